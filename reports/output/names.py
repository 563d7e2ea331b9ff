"""From ids to the columns that people read, in the order in which every format has them.

Owns the columns of `usage.csv`. Names are those of the export, so that a renamed topic has one name
for its whole past; an object that the export does not list keeps its id, and a topic the name it
last had in the log. Refuses arithmetic.
"""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from reports.input.export import Export

COLUMNS = (
    "organization",
    "project",
    "cluster",
    "stream",
    "topic",
    "topic_id",
    "principal",
    "meter",
    "unit",
    "window_start",
    "window_end",
    "quantity",
    "unit_price",
    "currency",
    "amount",
    "price_book_version",
    "estimated",
)
# One order for every format; the ids behind equal names keep it total.
ORDER = [*COLUMNS[:8], "window_start"]


def named(rows: DataFrame, export: Export) -> DataFrame:
    """Rated rows with names for ids and timestamps for microseconds, sorted, in one partition."""
    spark = rows.sparkSession
    topics = F.broadcast(spark.createDataFrame(export.topic_names()))
    projects = F.broadcast(spark.createDataFrame(export.project_names()))
    slash = F.col("topic_name").contains("/")
    stream = F.when(slash, F.split_part("topic_name", F.lit("/"), F.lit(1))).otherwise("")
    joined = rows.join(topics, "topic_id", "left").join(projects, "project_id", "left")
    return (
        joined.withColumns(
            {
                "organization": F.coalesce("organization", "organization_id"),
                "project": F.coalesce("project", "project_id"),
                "cluster": _chosen("cluster_id", export.clusters),
                "stream": F.coalesce("stream", stream),
                "topic": F.coalesce("topic", F.split_part("topic_name", F.lit("/"), F.lit(-1))),
                "principal": F.col("principal_id"),
                "window_start": F.timestamp_micros("window_start_us"),
                "window_end": F.timestamp_micros("window_end_us"),
            }
        )
        .select(*COLUMNS)
        .repartition(1)
        .sortWithinPartitions(*ORDER)
    )


def _chosen(key: str, names: Mapping[str, str]) -> Column:
    """The name of an id where there are few: clusters."""
    found = F.col(key)
    for identity, name in names.items():
        found = F.when(F.col(key) == identity, F.lit(name)).otherwise(found)
    return found
