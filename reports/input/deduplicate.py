"""Records that were reported more than once, counted once.

Owns the choice between copies of a record: roads to system topics repeat what was not acknowledged,
so one id may stand there again. Refuses to decide between copies that disagree: the first one
stands, and the run is marked.
"""

from collections.abc import Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F


def first_copies(rows: DataFrame, identity: Sequence[str], facts: Sequence[str]) -> DataFrame:
    """One row for each `identity`: the copy with the lowest offset. Adds `copies`, how many there
    are, and `conflict`, whether another one says something else in `facts`."""
    order = Window.partitionBy(*identity)
    said = F.struct(*facts)
    return (
        rows.withColumn("_rank", F.row_number().over(order.orderBy("offset")))
        .withColumn("copies", F.count(F.lit(1)).over(order))
        .withColumn("conflict", F.min(said).over(order) != F.max(said).over(order))
        .where("_rank = 1")
        .drop("_rank")
    )
