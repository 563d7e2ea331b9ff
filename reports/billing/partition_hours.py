"""Partition seconds, from when topics were made, grown and deleted; no node is asked.

Owns the cutting of a topic's spans into hours. Spans are of whole seconds, so the hours of a span
add up to it, to the second. Pure; integers only. Refuses samples: what was there between two of
them would be a guess.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from reports.billing.usage import HOUR_US, OWNER
from reports.input.export import Export, Span

METER = "partition_seconds"
SECOND_US = 1_000_000
_SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in (*OWNER, "topic_name")),
        ("partitions", pa.int64()),
        ("start_us", pa.int64()),
        ("end_us", pa.int64()),
    ]
)


def hourly(spark: SparkSession, export: Export) -> DataFrame | None:
    """Partition seconds per topic and hour, up to `as_of`; the columns of usage.hourly. None: there
    is nothing to count."""
    rows = _rows(export)
    if not rows:
        return None
    spans = spark.createDataFrame(pa.Table.from_pylist(rows, schema=_SCHEMA))
    first = F.col("start_us") - F.pmod("start_us", F.lit(HOUR_US))
    hours = spans.withColumn(
        "_hour_us", F.explode(F.sequence(first, F.col("end_us") - 1, F.lit(HOUR_US).cast("long")))
    )
    end = F.least("end_us", F.col("_hour_us") + HOUR_US)
    seconds = F.expr(f"cast((_end_us - greatest(start_us, _hour_us)) div {SECOND_US} as bigint)")
    return (
        hours.withColumn("_end_us", end)
        .withColumn("_quantity", seconds * F.col("partitions"))
        .groupBy(*OWNER, "topic_name", "_hour_us")
        .agg(F.sum("_quantity").alias("quantity"))
        .select(
            *OWNER,
            "topic_name",
            F.lit("").alias("principal_id"),
            F.lit(METER).alias("meter"),
            F.col("_hour_us").alias("window_start_us"),
            (F.col("_hour_us") + HOUR_US).alias("window_end_us"),
            "quantity",
            F.lit(False).alias("estimated"),
        )
    )


def seconds_within(spans: Iterable[Span], as_of: datetime, start: datetime, end: datetime) -> int:
    """Partition seconds of [start, end), from the spans themselves: what the hours must add up
    to."""
    total = 0
    for span in spans:
        until = min(as_of, end, span.end or as_of)
        total += max(0, (until - max(span.start, start)) // timedelta(seconds=1)) * span.partitions
    return total


def _rows(export: Export) -> list[dict[str, object]]:
    if export.as_of is None:
        return []
    rows: list[dict[str, object]] = []
    for span in export.lifecycle:
        end = min(export.as_of, span.end or export.as_of)
        stream, topic = export.topics.get(span.topic_id, ("", span.topic_id))
        if end <= span.start or topic.startswith("_"):
            continue
        rows.append(
            {
                "organization_id": span.organization_id,
                "project_id": span.project_id,
                "cluster_id": span.cluster_id,
                "topic_id": span.topic_id,
                "topic_name": f"{stream}/{topic}",
                "partitions": span.partitions,
                "start_us": _micros(span.start),
                "end_us": _micros(end),
            }
        )
    return rows


def _micros(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
