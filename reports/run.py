"""The usage run from names and prices to a published folder.

Owns the order of the steps and nothing of their content: freeze, thaw, compute, prove, publish. A
failure anywhere leaves the published reports as they were.
"""

from pathlib import Path

from pyspark.sql import DataFrame, Row, SparkSession

from reports import naming, rating, usage
from reports.errors import ArgumentError
from reports.export import Export
from reports.inputs import Frozen, freeze, thawed
from reports.page import Evidence
from reports.publish import Report, publish
from reports.session import open_session
from reports.usage_records import USAGE_TOPIC

METERS = ("ingress_bytes", "records")


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
    spark = open_session(master)
    try:
        if inputs or export is None:
            frozen = thawed(root, inputs)
        else:
            options = {"bootstrap": bootstrap, "key_variable": key_variable}
            frozen = freeze(spark, root, export, options)
        return report_of(spark, root, frozen)
    finally:
        spark.stop()


def report_of(spark: SparkSession, root: Path, frozen: Frozen) -> Report:
    """Compute and publish the report of an archive; the same archive gives the same bytes."""
    unique = usage.unique_closes(frozen.closes(spark)).cache()
    rows = naming.named(
        rating.rate(usage.hourly(unique), frozen.export.price_book, METERS), frozen.export
    )
    missing = usage.gaps(unique, from_beginning=frozen.usage_from_beginning)
    evidence = evidence_of(frozen, unique, missing, frozen.batches(spark))
    return publish(root, rows, frozen.export, evidence)


def evidence_of(
    frozen: Frozen, unique: DataFrame, missing: DataFrame, batches: DataFrame
) -> Evidence:
    """The reconciliation, collected: one row per partition of the cluster."""

    def place(row: Row) -> tuple[int, ...]:
        return tuple(row[name] for name in usage.PARTITION)

    partitions = sorted(usage.reconcile(unique, missing, batches).collect(), key=place)
    findings = sorted(missing.collect(), key=lambda row: (*place(row), row["next_sequence"]))

    def total(column: str) -> int:
        return sum(row[column] or 0 for row in partitions)

    return Evidence(
        input_sha256=frozen.sha256,
        complete=all(row["state"] in usage.STATES_COMPLETE for row in partitions),
        bytes_in_log=total("bytes_in_log"),
        bytes_billed=total("bytes_billed"),
        bytes_open=total("bytes_open"),
        bytes_before_log=total("bytes_before_log"),
        partitions=partitions,
        findings=findings,
    )
