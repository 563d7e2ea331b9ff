"""The `headrace` data source of Spark: topics of a cluster as DataFrames.

    from reports.source import HeadraceSource

    spark.dataSource.register(HeadraceSource)

Owns how stored batches are read and become Arrow columns; refuses to know what they are read for.
"""

from reports.source.data_source import HeadraceSource

__all__ = ["HeadraceSource"]
