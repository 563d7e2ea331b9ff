"""The rows of `retention.csv`: one for every trim, and one for every partition as it stands.

Owns the columns. A row with a cause tells of a deletion: offsets, bytes and records that went, and
the age of the youngest of them. A row without one tells of a partition: offsets and bytes that
live, when the policy takes something next, what holds it. `live_bytes` is 0 in the first and
`deleted_*` in the second, so that columns can be summed. Limits are those of the policy version by
which the trim was made; -1 is unlimited. Refuses sums.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from reports.retention.export import RetentionExport
from reports.retention.partition_state import Line
from reports.retention.rules import CLOCK_SKEW, UNDER_RETAINED

_INSTANT = pa.timestamp("us", tz="UTC")
ARROW = pa.schema(
    [
        ("topic", pa.string()),
        ("topic_id", pa.string()),
        ("partition", pa.int32()),
        ("policy_source", pa.string()),
        ("retention_ms", pa.int64()),
        ("retention_bytes", pa.int64()),
        ("live_bytes", pa.int64()),
        ("oldest_at", _INSTANT),
        ("deleted_bytes", pa.int64()),
        ("deleted_records", pa.int64()),
        ("first_offset", pa.int64()),
        ("last_offset", pa.int64()),
        ("cause", pa.string()),
        ("deleted_at", _INSTANT),
        ("age_at_deletion_ms", pa.int64()),
        ("next_deletion_at", _INSTANT),
        ("hold_id", pa.string()),
        ("violation", pa.string()),
    ]
)
COLUMNS = tuple(ARROW.names)
UNKNOWN_POLICY = "unknown"
# A cell stays one that every table takes, however many hold a partition.
HOLDS_SHOWN = 20
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def retention_rows(
    spark: SparkSession, unique: DataFrame, export: RetentionExport, standing: Sequence[Line]
) -> DataFrame:
    """COLUMNS, sorted, in one Spark partition."""
    order = ["topic", "topic_id", "partition", "_standing", "deleted_at", "first_offset"]
    here = spark.createDataFrame(_standing_table(standing)).withColumn("_standing", F.lit(1))
    gone = deletions(unique, export).withColumn("_standing", F.lit(0))
    return gone.unionByName(here).repartition(1).sortWithinPartitions(*order).select(*COLUMNS)


def deletions(unique: DataFrame, export: RetentionExport) -> DataFrame:
    """One row per trim, with what it broke."""
    spark = unique.sparkSession
    policies = F.broadcast(spark.createDataFrame(_policy_table(export)))
    names = F.broadcast(spark.createDataFrame(_name_table(export)))
    joined = unique.join(policies, ["topic_id", "policy_version"], "left").join(
        names, "topic_id", "left"
    )
    age_us = F.when(F.col("max_time_us") > 0, F.col("trimmed_at_us") - F.col("max_time_us"))
    age_ms = F.call_function("div", age_us, F.lit(1000))
    broken = F.concat_ws(
        " ",
        F.when(
            ((F.col("cause") == "size") & (age_ms < F.col("min_retention_ms")))
            | ((F.col("cause") == "time") & (age_ms < F.col("retention_ms"))),
            UNDER_RETAINED,
        ),
        F.when(age_us < 0, CLOCK_SKEW),
    )
    nothing = F.lit(None).cast("timestamp")
    return joined.select(
        F.coalesce("name", "topic_name").alias("topic"),
        "topic_id",
        "partition",
        F.coalesce("policy_source", F.lit(UNKNOWN_POLICY)).alias("policy_source"),
        "retention_ms",
        "retention_bytes",
        F.lit(0).cast("long").alias("live_bytes"),
        nothing.alias("oldest_at"),
        F.col("bytes").alias("deleted_bytes"),
        F.col("records").alias("deleted_records"),
        "first_offset",
        "last_offset",
        "cause",
        F.timestamp_micros("trimmed_at_us").alias("deleted_at"),
        age_ms.cast("long").alias("age_at_deletion_ms"),
        nothing.alias("next_deletion_at"),
        F.lit("").alias("hold_id"),
        broken.alias("violation"),
    )


def held_by(holds: Sequence[str]) -> str:
    """The holds of a cell: HOLDS_SHOWN of them by id, and how many more retention.json lists."""
    more = len(holds) - HOLDS_SHOWN
    return " ".join([*holds[:HOLDS_SHOWN], *([f"+{more}"] if more > 0 else [])])


def moment(microseconds: int | None) -> datetime | None:
    """An instant, or None where there is none (None, 0)."""
    return _EPOCH + timedelta(microseconds=microseconds) if microseconds else None


def _standing_table(standing: Sequence[Line]) -> pa.Table:
    rows = [
        {
            "topic": line.topic,
            "topic_id": line.topic_id,
            "partition": line.partition,
            "policy_source": line.policy.source if line.policy else UNKNOWN_POLICY,
            "retention_ms": line.policy.retention_ms if line.policy else None,
            "retention_bytes": line.policy.retention_bytes if line.policy else None,
            "live_bytes": line.live_bytes,
            "oldest_at": moment(line.oldest_us),
            "deleted_bytes": 0,
            "deleted_records": 0,
            "first_offset": line.log_start,
            "last_offset": line.log_end - 1,
            "cause": "",
            "deleted_at": None,
            "age_at_deletion_ms": None,
            "next_deletion_at": moment(line.next_due_us),
            "hold_id": held_by(line.holds),
            "violation": " ".join(line.codes),
        }
        for line in standing
    ]
    return pa.Table.from_pylist(rows, schema=ARROW)


def _policy_table(export: RetentionExport) -> pa.Table:
    return pa.table(
        {
            "topic_id": pa.array([one.topic_id for one in export.policies], pa.string()),
            "policy_version": pa.array([one.generation for one in export.policies], pa.int64()),
            "policy_source": pa.array([one.source for one in export.policies], pa.string()),
            "retention_ms": pa.array([one.retention_ms for one in export.policies], pa.int64()),
            "retention_bytes": pa.array(
                [one.retention_bytes for one in export.policies], pa.int64()
            ),
            "min_retention_ms": pa.array(
                [one.min_retention_ms for one in export.policies], pa.int64()
            ),
        }
    )


def _name_table(export: RetentionExport) -> pa.Table:
    return pa.table(
        {
            "topic_id": pa.array(list(export.topics), pa.string()),
            "name": pa.array([topic.name for topic in export.topics.values()], pa.string()),
        }
    )
