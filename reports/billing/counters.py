"""From the counters of the shards to hourly usage, and what is known to be missing of them.

Owns egress, requests and stored bytes: what no log can prove, and what is therefore bounded instead
(rule M2). A shard counts in one life of its process; what it had counted after its last record is
lost when the life ends without a `final` record, and is never billed. Pure: DataFrame in, DataFrame
out; integers only; the order of rows never matters. Refuses names, prices and clocks.

A counter is counted once by its id (node, incarnation, shard, sequence). Two things must hold: the
sequences of a life are contiguous, and the cumulative figure of a series moves by its deltas.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from reports.billing.usage import HOUR_US, OWNER, latest
from reports.input.deduplicate import first_copies

LIFE = ["node_id", "incarnation", "shard"]
COUNTER_ID = [*LIFE, "sequence"]
SERIES = [*LIFE, "topic", "principal", "meter"]
COUNTER_FACTS = ["topic", "principal", "meter", "delta", "cumulative", "window_end_us", "final"]
MODULUS = 1 << 63

# Of the states of a life: those that a bill must not have.
LIFE_STATES_BAD = ("CONFLICT", "GAP")


def unique_counters(counters: DataFrame) -> DataFrame:
    """One row per counter, with `copies` and `conflict` (deduplicate.py).

    The deltas of a conflict are those of the first copy: never more than was once reported.
    """
    return first_copies(counters, COUNTER_ID, COUNTER_FACTS)


def hourly(unique: DataFrame) -> DataFrame:
    """Sums per hour, principal and meter of each topic; the columns of usage.hourly.

    A window never crosses an hour; one that does (a clock that was set, a host that merged hours
    while it could not write) lies where it ended, and marks the row estimated.
    """
    last_us = F.col("window_end_us") - 1
    start_us = last_us - F.pmod(last_us, F.lit(HOUR_US))
    placed = unique.withColumn("_hour_us", start_us).withColumn(
        "_straddles", F.col("window_start_us") < start_us
    )
    summed = placed.groupBy(*OWNER, "principal_id", "meter", "_hour_us").agg(
        latest("topic_name", "window_end_us").alias("topic_name"),
        F.sum("delta").alias("quantity"),
        F.max("_straddles").alias("estimated"),
    )
    return summed.select(
        *OWNER,
        "topic_name",
        "principal_id",
        "meter",
        F.col("_hour_us").alias("window_start_us"),
        (F.col("_hour_us") + HOUR_US).alias("window_end_us"),
        "quantity",
        "estimated",
    )


def lives(unique: DataFrame, *, from_beginning: bool) -> DataFrame:
    """One row per life of a shard: LIFE, records, duplicates, conflicts, missing, last_us, state.

    missing: sequences that are not there. last_us: up to when it has reported; what a life that is
    POSSIBLY_LOST counted after that is gone. state: the worst that is so of CONFLICT, GAP, ENDED,
    RUNNING (the newest life of its node, which goes on counting) and POSSIBLY_LOST. from_beginning:
    `_usage` still holds its first record, so every life must begin with sequence 1.
    """
    found = unique.groupBy(*LIFE).agg(
        F.count(F.lit(1)).alias("records"),
        F.sum(F.col("copies") - 1).alias("duplicates"),
        F.sum(F.col("conflict").cast("long")).alias("conflicts"),
        F.min("sequence").alias("_first"),
        F.max("sequence").alias("_last"),
        F.max("window_end_us").alias("last_us"),
        F.max_by("final", "sequence").alias("_ended"),
    )
    newest = F.max("incarnation").over(Window.partitionBy("node_id"))
    begins = F.lit(1).cast("long") if from_beginning else F.col("_first")
    missing = F.col("_last") - begins + 1 - F.col("records")
    state = (
        F.when(F.col("conflicts") > 0, "CONFLICT")
        .when(F.col("missing") != 0, "GAP")
        .when(F.col("_ended"), "ENDED")
        .when(F.col("incarnation") == F.col("_newest"), "RUNNING")
        .otherwise("POSSIBLY_LOST")
    )
    measured = found.withColumn("missing", missing).withColumn("_newest", newest)
    return measured.withColumn("state", state).drop("_first", "_last", "_ended", "_newest")


def series(unique: DataFrame, *, from_beginning: bool) -> DataFrame:
    """Per organization and meter: series, differing (of them), delta, moved.

    delta: the sum of the deltas. moved: by how much the cumulative figures moved, each modulo 2^63;
    the two are equal unless a record is missing or wrong. A figure that is not above its own delta
    began anew since the record before, as it does when a shard needed its row for somebody else:
    it moved by the delta. Both decimal(38,0).
    """
    wide = "decimal(38,0)"
    modulus = F.lit(str(MODULUS)).cast(wide)
    order = Window.partitionBy(*SERIES).orderBy("sequence")
    start = F.lit(0) if from_beginning else F.col("cumulative") - F.col("delta")
    before = F.coalesce(F.lag("cumulative").over(order), start).cast(wide)
    anew = F.col("cumulative") <= F.col("delta")
    step = F.pmod((F.col("cumulative").cast(wide) - before).cast(wide), modulus)
    moved = F.when(anew, F.col("delta").cast(wide)).otherwise(step)
    found = (
        unique.withColumn("_moved", moved)
        .groupBy(*SERIES)
        .agg(
            F.max("organization_id").alias("organization_id"),
            F.sum(F.col("delta").cast(wide)).cast(wide).alias("delta"),
            F.sum("_moved").cast(wide).alias("_moved"),
            F.max(F.col("_moved") != F.col("delta")).alias("_differs"),
        )
    )
    return found.groupBy("organization_id", "meter").agg(
        F.count(F.lit(1)).alias("series"),
        F.sum(F.col("_differs").cast("long")).alias("differing"),
        F.sum("delta").cast(wide).alias("delta"),
        F.sum("_moved").cast(wide).alias("moved"),
    )
