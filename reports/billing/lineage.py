"""Where a figure came from: raw sums, and for each hour its partitions and offsets.

Owns the second addition of the bill (from closes and counters, grouped otherwise than its rows) and
the way back from an hour to the log. Pure; integers only. Refuses prices.
"""

from collections.abc import Sequence

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from reports.billing.usage import HOUR_US, PARTITION, over_sums

DAY_US = 24 * HOUR_US


def raw_of_closes(rows: Sequence[Row]) -> list[Row]:
    """Quantities per organization, time and meter (organization_id, at_us, meter, quantity), from
    rows of `ingress`: by partition, where the bill is by principal."""
    return [
        Row(
            organization_id=row["organization_id"],
            at_us=row["hour_us"],
            meter=meter,
            quantity=row[column],
        )
        for row in rows
        for meter, column in (("ingress_bytes", "bytes"), ("records", "records"))
    ]


def raw_of_counters(unique_counters: DataFrame) -> DataFrame:
    """The same columns from counters, by UTC day."""
    last_us = F.col("window_end_us") - 1
    return (
        unique_counters.withColumn("at_us", last_us - F.pmod(last_us, F.lit(DAY_US)))
        .groupBy("organization_id", "at_us", "meter")
        .agg(F.sum("delta").alias("quantity"))
    )


def ingress(unique_closes: DataFrame, batches: DataFrame) -> DataFrame:
    """One row per partition and hour: organization_id, topic_id, PARTITION, hour_us, closes, bytes,
    records, from_op, to_op, and of the batches up to the last close that the log still holds
    first_offset, end_offset (exclusive), bytes_in_log. What is open is billed by a later run: it
    stands behind no figure of this one.

    A batch lies in the hour of its append time, which is that of its window; only a window that was
    extended over an hour (its row is marked estimated) ends later than some of its batches.
    """
    last_us = F.col("window_end_us") - 1
    hour = [*PARTITION, "hour_us"]

    closed = (
        unique_closes.withColumn("hour_us", last_us - F.pmod(last_us, F.lit(HOUR_US)))
        .groupBy(*hour)
        .agg(
            F.max("organization_id").alias("organization_id"),
            F.max("topic_id").alias("topic_id"),
            F.count(F.lit(1)).alias("closes"),
            F.sum(over_sums("ingress_bytes")).alias("bytes"),
            F.sum(over_sums("records")).alias("records"),
            F.min("from_op").alias("from_op"),
            F.max("to_op").alias("to_op"),
        )
    )
    append_us = F.col("append_time_us")
    last = unique_closes.groupBy(*PARTITION).agg(F.max("to_op").alias("_closed_op"))
    stored = (
        batches.join(F.broadcast(last), PARTITION)
        .where(F.col("op") <= F.col("_closed_op"))
        .withColumn("hour_us", append_us - F.pmod(append_us, F.lit(HOUR_US)))
        .groupBy(*hour)
        .agg(
            F.min("base_offset").alias("first_offset"),
            F.max(F.col("base_offset") + F.col("record_count")).alias("end_offset"),
            F.sum("stored_bytes").alias("bytes_in_log"),
        )
    )
    return closed.join(stored, hour, "left")
