"""The `headrace` data source of Spark: topics of a cluster as DataFrames.

    from reports.source import HeadraceSource

    spark.dataSource.register(HeadraceSource)

Owns the conversion of stored batches to Arrow columns. Refuses to know the purpose of a read.
"""

from reports.source.data_source import HeadraceSource

__all__ = ["HeadraceSource"]
