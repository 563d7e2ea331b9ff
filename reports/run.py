"""The usage run from names and prices to a published folder.

Owns the order of the steps and nothing of their content: freeze, thaw, compute, prove, publish. A
failure anywhere leaves the published reports as they were.
"""

from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame, Row, SparkSession

from reports.billing import counters, lineage, partition_hours, rating, usage
from reports.billing.reconciliation import Measured
from reports.errors import ArgumentError
from reports.input.export import Export
from reports.input.freeze import Frozen, freeze, thawed
from reports.input.usage_records import USAGE_TOPIC
from reports.output import names
from reports.output.publish import Report, publish
from reports.output.usage_page import Evidence
from reports.session import opened_session

METERS_OF_CLOSES = ("ingress_bytes", "records")


def run_usage(
    root: Path,
    export: Export | None,
    *,
    master: str,
    bootstrap: str,
    key_variable: str,
    inputs: str,
) -> Report:
    """Freeze the cluster at `bootstrap` (or take the archive `inputs`), compute, and publish under
    `root`.

    The names and prices of an archive are those it was frozen with: `export` is not looked at then.
    """
    if bool(bootstrap) == bool(inputs):
        raise ArgumentError(
            "SOURCE_MISSING",
            f"Exactly one of --bootstrap (to freeze {USAGE_TOPIC}) and --inputs must be given.",
            "Example: --bootstrap 127.0.0.1:8461.",
        )
    with opened_session(master) as spark:
        if inputs or export is None:
            frozen = thawed(root, inputs)
        else:
            options = {"bootstrap": bootstrap, "key_variable": key_variable}
            frozen = freeze(spark, root, export, options)
        return report_of(spark, root, frozen)


def report_of(spark: SparkSession, root: Path, frozen: Frozen) -> Report:
    """Compute and publish the report of an archive; the same archive gives the same bytes."""
    closes = usage.unique_closes(frozen.closes(spark)).cache()
    counted = counters.unique_counters(frozen.counters(spark)).cache()
    series: list[Row] = []
    if frozen.has_counters:
        series = counters.series(counted, from_beginning=frozen.usage_from_beginning).collect()
    spans = partition_hours.hourly(spark, frozen.export)
    hours = usage.hourly(closes)
    meters = set(METERS_OF_CLOSES) | {row["meter"] for row in series}
    if series:
        hours = hours.unionByName(counters.hourly(counted))
    if spans is not None:
        hours = hours.unionByName(spans)
        meters.add(partition_hours.METER)
    rated = rating.rate(hours, frozen.export.books, sorted(meters))
    measured = measured_of(frozen, closes, counted, series, frozen.batches(spark))
    rows = names.named(rated, frozen.export)
    return publish(root, rows, frozen.export, evidence_of(frozen, measured))


def measured_of(
    frozen: Frozen,
    closes: DataFrame,
    counted: DataFrame,
    series: Sequence[Row],
    batches: DataFrame,
) -> Measured:
    """What is compared with the rows, collected: it grows with partitions and hours."""
    missing = usage.gaps(closes, from_beginning=frozen.usage_from_beginning)
    partitions = usage.reconcile(closes, missing, batches)
    lives: list[Row] = []
    ingress = _ordered(lineage.ingress(closes, batches), ["hour_us", *usage.PARTITION])
    raw = lineage.raw_of_closes(ingress)
    if series:
        found = counters.lives(counted, from_beginning=frozen.usage_from_beginning)
        lives = _ordered(found, counters.LIFE)
        raw += lineage.raw_of_counters(counted).collect()
    return Measured(
        lives=lives,
        series=sorted(series, key=lambda row: (row["organization_id"], row["meter"])),
        raw=raw,
        ingress=ingress,
        partitions=_ordered(partitions, usage.PARTITION),
        findings=_ordered(missing, [*usage.PARTITION, "next_sequence"]),
    )


def evidence_of(frozen: Frozen, measured: Measured) -> Evidence:
    """The totals of the reconciliation: one row per partition of the cluster."""

    def total(column: str) -> int:
        return sum(row[column] or 0 for row in measured.partitions)

    return Evidence(
        input_sha256=frozen.sha256,
        complete=all(row["state"] in usage.STATES_COMPLETE for row in measured.partitions),
        bytes_in_log=total("bytes_in_log"),
        bytes_billed=total("bytes_billed"),
        bytes_open=total("bytes_open"),
        bytes_before_log=total("bytes_before_log"),
        measured=measured,
    )


def _ordered(frame: DataFrame, keys: Sequence[str]) -> list[Row]:
    return sorted(frame.collect(), key=lambda row: tuple(row[name] for name in keys))
