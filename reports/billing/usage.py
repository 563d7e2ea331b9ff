"""From closed metering windows to hourly usage, and the proof that nothing is missing.

Owns the arithmetic of the bill before prices: which closes count, in which hour, and how they
compare with the batches themselves. Pure: DataFrame in, DataFrame out; integers only; the order of
rows never matters. Refuses names, prices and clocks.

A close is counted once by its id (topic, created_revision, partition, sequence). The closes of a
partition are contiguous (rule M2): sequence = previous + 1 and from_op = previous to_op + 1;
anything else is a gap and is shown, never guessed.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from reports.input.deduplicate import first_copies

HOUR_US = 3_600_000_000
FIRST_SEQUENCE = 1

PARTITION = ["topic", "created_revision", "partition"]
OWNER = ["organization_id", "project_id", "cluster_id", "topic_id"]
CLOSE_ID = [*PARTITION, "sequence"]
CLOSE_FACTS = ["from_op", "to_op", "window_start_us", "window_end_us", "topic_id", "sums"]

# States of a partition in the reconciliation, worst first.
STATES = ("CONFLICT", "GAP", "LOG_INCOMPLETE", "UNVERIFIED", "DIFFERENCE", "OPEN", "EXACT")
STATES_COMPLETE = frozenset({"EXACT", "OPEN", "UNVERIFIED"})


def unique_closes(closes: DataFrame) -> DataFrame:
    """One row per close, with `copies` and `conflict` (deduplicate.py)."""
    return first_copies(closes, CLOSE_ID, CLOSE_FACTS)


def gaps(unique: DataFrame, *, from_beginning: bool) -> DataFrame:
    """Where closes are missing: PARTITION, after_sequence, next_sequence, from_op, to_op (both
    missing, inclusive).

    from_beginning: `_usage` still holds its first record, so every partition must begin with its
    first close. Otherwise retention may have taken older ones and the first that is left is where
    the comparison starts.
    """
    order = Window.partitionBy(*PARTITION).orderBy("sequence")
    start = F.lit(FIRST_SEQUENCE - 1) if from_beginning else F.col("sequence") - 1
    before = F.coalesce(F.lag("sequence").over(order), start)
    return (
        unique.withColumn("after_sequence", before.cast("long"))
        .withColumn("_next_op", F.lag("to_op").over(order) + 1)
        .where(
            (F.col("sequence") != F.col("after_sequence") + 1)
            | (F.col("_next_op").isNotNull() & (F.col("from_op") != F.col("_next_op")))
        )
        .select(
            *PARTITION,
            "after_sequence",
            F.col("sequence").alias("next_sequence"),
            F.coalesce("_next_op", F.lit(0)).cast("long").alias("from_op"),
            (F.col("from_op") - 1).alias("to_op"),
        )
    )


def hourly(unique: DataFrame) -> DataFrame:
    """Sums per hour and principal of each topic: one row per meter.

    Columns: organization_id, project_id, cluster_id, topic_id, topic_name, principal_id, meter,
    window_start_us, window_end_us, quantity, estimated. A window lies in the hour in which it
    ended: its last batch was appended there. estimated: some window of this hour began in an
    earlier one, so the hour (not the sum) is an approximation.
    """
    last_us = F.col("window_end_us") - 1
    start_us = last_us - F.pmod(last_us, F.lit(HOUR_US))
    rows = unique.withColumn("_sum", F.explode("sums")).select(
        *OWNER,
        "topic_name",
        "window_end_us",
        F.col("_sum.principal_id").alias("principal_id"),
        start_us.alias("_hour_us"),
        (F.col("window_start_us") < start_us).alias("_straddles"),
        F.col("_sum.ingress_bytes").alias("ingress_bytes"),
        F.col("_sum.records").alias("records"),
    )
    summed = rows.groupBy(*OWNER, "principal_id", "_hour_us").agg(
        latest("topic_name", "window_end_us").alias("topic_name"),
        F.sum("ingress_bytes").alias("ingress_bytes"),
        F.sum("records").alias("records"),
        F.max("_straddles").alias("estimated"),
    )
    kept = [*OWNER, "topic_name", "principal_id", "_hour_us", "estimated"]
    metered = summed.unpivot(
        [F.col(name) for name in kept], ["ingress_bytes", "records"], "meter", "quantity"
    )
    return metered.select(
        *kept[:-2],
        "meter",
        F.col("_hour_us").alias("window_start_us"),
        (F.col("_hour_us") + HOUR_US).alias("window_end_us"),
        "quantity",
        "estimated",
    )


def reconcile(unique: DataFrame, missing: DataFrame, batches: DataFrame) -> DataFrame:
    """Meter against log, one row per partition of the cluster. All figures are bytes unless named
    otherwise.

    in_log: sum of the stored batches, from the batches themselves. before_log: what the log held
    before its first batch that is left (retention). open: in_log above the last close. unread:
    between the frozen batches but not among them. difference = before_log + in_log + unread - open
    - billed, and zero is the only good answer.
    """
    meter = unique.groupBy(*PARTITION).agg(
        F.max_by("topic_id", "sequence").alias("topic_id"),
        F.max_by("organization_id", "sequence").alias("organization_id"),
        F.count(F.lit(1)).alias("closes"),
        F.sum(F.col("copies") - 1).alias("duplicates"),
        F.sum(F.col("conflict").cast("long")).alias("conflicts"),
        F.max("to_op").alias("_last_op"),
        F.sum(over_sums("ingress_bytes")).alias("bytes_billed"),
        F.sum(over_sums("records")).alias("records_billed"),
    )
    holes = missing.groupBy(*PARTITION).agg(F.count(F.lit(1)).alias("gaps"))
    closed = unique.groupBy(*PARTITION).agg(F.max("to_op").alias("_closed_op"))
    log = (
        batches.join(F.broadcast(closed), PARTITION, "left")
        .groupBy(*PARTITION)
        .agg(
            F.sum("stored_bytes").alias("bytes_in_log"),
            F.sum("record_count").alias("records_in_log"),
            F.sum(_where_open("stored_bytes")).alias("bytes_open"),
            F.min(F.col("cumulative_bytes") - F.col("stored_bytes")).alias("bytes_before_log"),
            F.max("cumulative_bytes").alias("_cumulative"),
        )
    )
    joined = meter.join(holes, PARTITION, "left").join(log, PARTITION, "full")
    counts = ["closes", "duplicates", "conflicts", "gaps", "bytes_billed", "records_billed"]
    filled = joined.fillna(0, subset=[*counts, "bytes_in_log", "records_in_log", "bytes_open"])
    unread = F.col("_cumulative") - F.col("bytes_before_log") - F.col("bytes_in_log")
    measured = filled.withColumn("bytes_unread", F.coalesce(unread, F.lit(0))).withColumn(
        "difference",
        F.expr("bytes_before_log + bytes_in_log + bytes_unread - bytes_open - bytes_billed"),
    )
    return measured.withColumn("state", _state()).drop("_last_op", "_cumulative")


def _state() -> Column:
    return (
        F.when(F.col("conflicts") > 0, "CONFLICT")
        .when(F.col("gaps") > 0, "GAP")
        .when(F.col("bytes_unread") != 0, "LOG_INCOMPLETE")
        .when(F.col("bytes_before_log").isNull(), "UNVERIFIED")
        .when(F.col("difference") != 0, "DIFFERENCE")
        .when(F.col("bytes_open") > 0, "OPEN")
        .otherwise("EXACT")
    )


def latest(value: str, order: str) -> Column:
    """The value at the highest `order`, ties by the value itself.

    The same answer whatever the order of rows.
    """
    return F.max(F.struct(F.col(order), F.col(value))).getField(value)


def over_sums(field: str) -> Column:
    """The sum of a figure over the principals of a close."""
    zero = F.lit(0).cast("long")
    return F.aggregate("sums", zero, lambda total, one: total + one.getField(field))


def _where_open(field: str) -> Column:
    is_open = F.col("_closed_op").isNull() | (F.col("op") > F.col("_closed_op"))
    return F.when(is_open, F.col(field)).otherwise(F.lit(0))
