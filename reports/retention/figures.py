"""From trims, inventories and stored batches to what was deleted, what lives and what will go.

Owns the arithmetic of the retention report. Pure: DataFrame in, DataFrame out; integers only; the
order of rows never matters. Refuses names, judgement and clocks: `as_of` is an input.

A trim is counted once by its id (topic, created_revision, partition, trim_op). The trims of a
partition are contiguous: sequence = previous + 1 and first_offset = previous last_offset + 1;
anything else is a gap and is shown, never guessed.

Records go by offsets, bytes with their segment. A purge may end inside a segment, and inside a
batch: what lies below it is unreadable from then on and counts as deleted records there, last -
first + 1 (the node's own `records` are those of whole segments). Its bytes are stored until the
segment goes and count with the trim that takes that. So a batch that the log's start cuts lives
with all of its bytes and with the records that are left.

Segments go whole, batches are what is known. So what is `due` here is what the policy allows to go,
batch by batch; it goes with its segment, at the latest when the youngest batch of that is due.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from reports.billing.usage import FIRST_SEQUENCE, HOUR_US, PARTITION
from reports.input.deduplicate import first_copies

TRIM_ID = [*PARTITION, "trim_op"]
TRIM_FACTS = [
    "policy_version",
    "cause",
    "first_offset",
    "last_offset",
    "bytes",
    "records",
    "min_time_us",
    "max_time_us",
    "sequence",
    "trimmed_at_us",
    "topic_id",
]

DAY_US = 24 * HOUR_US
# How late a node may be before it is called late: a trim waits for its turn, and for the clock.
GRACE_US = 300_000_000
# Beyond this nothing is foreseen at the present rate.
FORESEEN_US_MAX = 3_650 * DAY_US
DAYS_FORESEEN = 30
# A thousand years. Who keeps longer keeps for ever: neither a calendar nor 64 bits hold the end.
AGE_MS_MAX = 365_000 * 86_400_000

HORIZONS = {"now": 0, "1h": HOUR_US, "24h": DAY_US, "7d": 7 * DAY_US}
AGES = {
    "<1h": HOUR_US,
    "1-6h": 6 * HOUR_US,
    "6-24h": DAY_US,
    "1-7d": 7 * DAY_US,
    "7-30d": 30 * DAY_US,
    "30-90d": 90 * DAY_US,
    "90-365d": 365 * DAY_US,
}
OLDEST, FUTURE, UNKNOWN = ">365d", "future", "unknown"
AGE_BUCKETS = (*AGES, OLDEST, FUTURE, UNKNOWN)


def unique_trims(trims: DataFrame) -> DataFrame:
    """One row per trim, with `copies` and `conflict` (deduplicate.py).

    `records` are the offsets that became unreadable.
    """
    unique = first_copies(trims, TRIM_ID, TRIM_FACTS)
    return unique.withColumn("records", F.col("last_offset") - F.col("first_offset") + 1)


def trim_gaps(unique: DataFrame, *, from_beginning: bool) -> DataFrame:
    """Where trims are missing: PARTITION, after_sequence, next_sequence, and the offsets that went
    untold (both inclusive).

    from_beginning: `_retention` still holds its first record, so every partition must begin with
    its first trim.
    """
    order = Window.partitionBy(*PARTITION).orderBy("sequence")
    start = F.lit(FIRST_SEQUENCE - 1) if from_beginning else F.col("sequence") - 1
    return (
        unique.withColumn(
            "after_sequence", F.coalesce(F.lag("sequence").over(order), start).cast("long")
        )
        .withColumn("_next", F.lag("last_offset").over(order) + 1)
        .where(
            (F.col("sequence") != F.col("after_sequence") + 1)
            | (F.col("_next").isNotNull() & (F.col("first_offset") != F.col("_next")))
        )
        .select(
            *PARTITION,
            "after_sequence",
            F.col("sequence").alias("next_sequence"),
            F.coalesce("_next", F.lit(0)).cast("long").alias("first_offset"),
            (F.col("first_offset") - 1).alias("last_offset"),
        )
    )


def latest_inventories(inventories: DataFrame) -> DataFrame:
    """One row per partition: its last inventory; of copies the one with the lowest offset."""
    order = Window.partitionBy(*PARTITION).orderBy(F.desc("at_us"), F.asc("offset"))
    ranked = inventories.withColumn("_rank", F.row_number().over(order))
    return ranked.where("_rank = 1").drop("_rank", "offset")


def deleted(unique: DataFrame, keys: list[str]) -> DataFrame:
    """What went, by `keys`: trims, bytes, records, offset range, times, age at deletion in ms.

    Ages count from the append to the trim. age_min and age_p50 are of each trim's youngest record
    (p50 weighted by records, exact), age_max of its oldest; null where no whole segment went.
    """
    youngest = F.when(F.col("max_time_us") > 0, F.col("trimmed_at_us") - F.col("max_time_us"))
    oldest = F.when(F.col("min_time_us") > 0, F.col("trimmed_at_us") - F.col("min_time_us"))
    aged = unique.withColumn("_youngest", youngest).withColumn("_oldest", oldest)
    over = Window.partitionBy(*keys)
    upto = over.orderBy("_youngest", *TRIM_ID).rowsBetween(Window.unboundedPreceding, 0)
    counted = F.when(F.col("_youngest").isNotNull(), F.col("records")).otherwise(0)
    weighed = (
        aged.withColumn("_counted", counted)
        .withColumn("_upto", F.sum("_counted").over(upto))
        .withColumn("_all", F.sum("_counted").over(over))
    )
    half = F.col("_youngest").isNotNull() & (2 * F.col("_upto") >= F.col("_all"))
    return weighed.groupBy(*keys).agg(
        F.count(F.lit(1)).alias("trims"),
        F.sum("bytes").alias("bytes"),
        F.sum("records").alias("records"),
        F.min("first_offset").alias("first_offset"),
        F.max("last_offset").alias("last_offset"),
        F.min(F.when(F.col("min_time_us") > 0, F.col("min_time_us"))).alias("oldest_us"),
        F.max(F.when(F.col("max_time_us") > 0, F.col("max_time_us"))).alias("newest_us"),
        _ms(F.min("_youngest")).alias("age_min_ms"),
        _ms(F.min(F.when(half, F.col("_youngest")))).alias("age_p50_ms"),
        _ms(F.max("_oldest")).alias("age_max_ms"),
    )


def hourly_deletions(unique: DataFrame) -> DataFrame:
    """Bytes by topic_id, cause and hour of the trim: topic_id, cause, hour_us, bytes."""
    hour_us = F.col("trimmed_at_us") - F.pmod(F.col("trimmed_at_us"), F.lit(HOUR_US))
    timed = unique.withColumn("hour_us", hour_us)
    return timed.groupBy("topic_id", "cause", "hour_us").agg(F.sum("bytes").alias("bytes"))


def placed(batches: DataFrame, places: DataFrame, as_of_us: int) -> DataFrame:
    """Batches with the policy of their partition and when they are due.

    places: one row per partition: PARTITION, retention_ms, retention_bytes, min_retention_ms (-1:
    unlimited), held_from (null: not held), log_start (null: not known). Adds `_free` (not held),
    `due_us` (null: never), and the facts of the log that it was computed from. Of a batch that the
    log's start cuts, base_offset and record_count are those of what is left.
    """
    over = Window.partitionBy(*PARTITION)
    end = F.col("base_offset") + F.col("record_count")
    recent = F.when(F.col("append_time_us") > as_of_us - DAY_US, F.col("stored_bytes"))
    start = F.greatest("base_offset", "log_start")  # Of those that are known.
    joined = (
        batches.join(F.broadcast(places), PARTITION, "inner")
        .where(end > start)
        .withColumns({"base_offset": start, "record_count": end - start})
    )
    logs = (
        joined.withColumn("_live", F.sum("stored_bytes").over(over))
        .withColumn("_before", F.min(F.col("cumulative_bytes") - F.col("stored_bytes")).over(over))
        .withColumn("_oldest_us", F.min("append_time_us").over(over))
        .withColumn("_recent", F.coalesce(F.sum(recent).over(over), F.lit(0)))
        .withColumn("_free", F.col("held_from").isNull() | (end <= F.col("held_from")))
    )
    by_time = F.when(F.col("retention_ms").between(0, AGE_MS_MAX), _aged_us("retention_ms"))
    promised_us = _aged_us("min_retention_ms")
    full_us = F.when(F.col("retention_bytes") >= 0, _full_us(as_of_us))
    by_size = F.when(full_us.isNotNull(), F.greatest(full_us, promised_us))
    due_us = F.when(F.col("_free"), F.least(by_time, by_size))
    return logs.withColumn("due_us", due_us).withColumn("_end", end)


def _aged_us(age_ms: str) -> Column:
    """When a batch is as old as a limit, which may be any."""
    return F.col("append_time_us") + F.least(F.col(age_ms), F.lit(AGE_MS_MAX)) * 1000


def _full_us(as_of_us: int) -> Column:
    """When the log behind a batch is as large as what is kept, at the rate of the last day."""
    rest = F.col("_live") - (F.col("cumulative_bytes") - F.col("_before"))
    need = (F.col("retention_bytes") - rest).cast("decimal(19,0)")
    span_us = F.lit(as_of_us) - F.col("_oldest_us")
    span = F.least(F.lit(DAY_US), F.greatest(F.lit(60_000_000), span_us)).cast("decimal(12,0)")
    rate = F.greatest(F.col("_recent"), F.lit(1)).cast("decimal(19,0)")
    wait = F.least((need * span / rate).cast("decimal(38,0)"), F.lit(FORESEEN_US_MAX))
    later = F.when(F.col("_recent") > 0, F.lit(as_of_us) + wait.cast("long"))
    return F.when(need <= 0, F.lit(as_of_us)).otherwise(later)


def logs(due: DataFrame, as_of_us: int) -> DataFrame:
    """One row per partition with batches: what lives, and what the rules look at. In bytes unless
    named otherwise.

    bytes_before: appended before the first batch of which anything lives.
    expired: older than the policy's age and the grace; aged: older than the promised age and the
    grace (all, without one); future: appended later than as_of and the grace; _held is left out
    of the first two.
    """

    def bytes_where(condition: Column) -> Column:
        return F.coalesce(F.sum(F.when(condition, F.col("stored_bytes"))), F.lit(0)).cast("long")

    late_us = F.lit(as_of_us - GRACE_US)
    expired = (F.col("retention_ms") >= 0) & (_aged_us("retention_ms") <= late_us)
    aged = _aged_us("min_retention_ms") <= late_us
    upcoming = [
        bytes_where(F.col("due_us") <= as_of_us + horizon).alias(f"bytes_{name}")
        for name, horizon in HORIZONS.items()
    ]
    upcoming += [
        F.coalesce(
            F.sum(F.when(F.col("due_us") <= as_of_us + horizon, F.col("record_count"))), F.lit(0)
        ).alias(f"records_{name}")
        for name, horizon in HORIZONS.items()
    ]
    upcoming += [
        F.min(
            F.when(
                F.col("due_us").isNull() | (F.col("due_us") > as_of_us + horizon),
                F.col("append_time_us"),
            )
        ).alias(f"oldest_us_{name}")
        for name, horizon in HORIZONS.items()
    ]
    return due.groupBy(*PARTITION).agg(
        F.sum("stored_bytes").alias("live_bytes"),
        F.sum("record_count").alias("live_records"),
        F.min("base_offset").alias("log_start"),
        F.max("_end").alias("log_end"),
        F.min("_before").alias("bytes_before"),
        F.min("append_time_us").alias("oldest_us"),
        F.max("append_time_us").alias("newest_us"),
        F.max("stored_bytes").alias("largest_batch"),
        F.max("_recent").alias("bytes_last_day"),
        bytes_where(expired & F.col("_free")).alias("expired_bytes"),
        bytes_where(aged & F.col("_free")).alias("aged_bytes"),
        bytes_where(~F.col("_free")).alias("held_bytes"),
        bytes_where(F.col("append_time_us") > as_of_us + GRACE_US).alias("future_bytes"),
        F.min("due_us").alias("next_due_us"),
        F.coalesce(
            F.max(F.when(F.col("due_us") <= as_of_us + DAY_US, F.col("_end"))),
            F.min("base_offset"),
        ).alias("end_due_24h"),
        *upcoming,
    )


def ages(batches: DataFrame, as_of_us: int) -> DataFrame:
    """Live bytes and records of each partition by age since the append: PARTITION, bucket, ..

    What was appended while the report began is not of the future: that begins after the grace.
    """
    age_us = F.lit(as_of_us) - F.col("append_time_us")
    bucket = F.when(F.col("append_time_us") <= 0, UNKNOWN).when(age_us < -GRACE_US, FUTURE)
    for name, limit_us in AGES.items():
        bucket = bucket.when(age_us < limit_us, name)
    return (
        batches.withColumn("bucket", bucket.otherwise(OLDEST))
        .groupBy(*PARTITION, "bucket")
        .agg(F.sum("stored_bytes").alias("bytes"), F.sum("record_count").alias("records"))
    )


def schedule(due: DataFrame, as_of_us: int) -> DataFrame:
    """What is due on each of the next DAYS_FORESEEN days: PARTITION, day, bytes, records, first and
    last offset. Day 0 is due already; day 1 are the next 24 hours.
    """
    wait_us = F.greatest(F.col("due_us") - F.lit(as_of_us), F.lit(0))
    return (
        due.where(F.col("due_us").isNotNull())
        .withColumn("_wait_us", wait_us)
        .withColumn("day", F.expr(f"cast((_wait_us + {DAY_US - 1}) div {DAY_US} as int)"))
        .where(F.col("day") <= DAYS_FORESEEN)
        .groupBy(*PARTITION, "day")
        .agg(
            F.sum("stored_bytes").alias("bytes"),
            F.sum("record_count").alias("records"),
            F.min("base_offset").alias("first_offset"),
            (F.max("_end") - 1).alias("last_offset"),
        )
    )


def _ms(microseconds: Column) -> Column:
    return F.call_function("div", microseconds, F.lit(1000)).cast("long")
