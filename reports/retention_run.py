"""The retention run from policies and names to a published folder.

Owns the order of the steps and nothing of their content: freeze, thaw, compute, judge, publish. A
failure anywhere leaves the published reports as they were.
"""

from pathlib import Path

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from reports.billing.usage import PARTITION
from reports.errors import ArgumentError
from reports.output.publish import Report
from reports.output.retention_publish import publish_retention
from reports.retention import figures
from reports.retention.export import RetentionExport
from reports.retention.freeze import FrozenRetention, freeze_retention, thawed_retention
from reports.retention.partition_state import lines, place_of, places, trimmed_of
from reports.retention.records import RETENTION_TOPIC
from reports.retention.rows import deletions, retention_rows
from reports.retention.summary import Gathered
from reports.session import opened_session


def run_retention(
    root: Path,
    export: RetentionExport | None,
    *,
    master: str,
    bootstrap: str,
    key_variable: str,
    inputs: str,
) -> Report:
    """Freeze the cluster at `bootstrap` (or take the archive `inputs`), compute, and publish under
    `root`.

    Policies and the moment of an archive are those it was frozen with: `export` is not looked at
    then.
    """
    if bool(bootstrap) == bool(inputs):
        raise ArgumentError(
            "SOURCE_MISSING",
            f"Exactly one of --bootstrap (to freeze {RETENTION_TOPIC}) and --inputs must be given.",
            "Example: --bootstrap 127.0.0.1:8461.",
        )
    with opened_session(master) as spark:
        if inputs or export is None:
            frozen = thawed_retention(root, inputs)
        else:
            options = {"bootstrap": bootstrap, "key_variable": key_variable}
            frozen = freeze_retention(spark, root, export, options)
        return retention_report_of(spark, root, frozen)


def retention_report_of(spark: SparkSession, root: Path, frozen: FrozenRetention) -> Report:
    """Compute and publish the report of an archive; the same archive gives the same bytes."""
    unique = figures.unique_trims(frozen.trims(spark)).cache()
    gathered = gathered_of(spark, frozen, unique)
    rows = retention_rows(spark, unique, frozen.export, gathered.lines)
    return publish_retention(root, rows, frozen, gathered)


def gathered_of(spark: SparkSession, frozen: FrozenRetention, unique: DataFrame) -> Gathered:
    """Everything but the rows themselves, collected."""
    as_of_us = frozen.export.as_of_us
    newest = figures.latest_inventories(frozen.inventories(spark)).collect()
    inventories = {place_of(row): row for row in newest}
    gaps = _ordered(figures.trim_gaps(unique, from_beginning=frozen.from_beginning))
    ranges = figures.deleted(unique, ["topic_id", *PARTITION, "cause"]).collect()
    trimmed = trimmed_of(ranges, gaps)
    held = spark.createDataFrame(places(frozen, inventories, trimmed))
    due = figures.placed(frozen.batches(spark), held, as_of_us).cache()
    logs = {place_of(row): row for row in figures.logs(due, as_of_us).collect()}
    return Gathered(
        lines=lines(frozen, inventories, logs, trimmed),
        deleted=_ordered(figures.deleted(unique, ["topic_id", "cause"])),
        ranges=sorted(ranges, key=_key),
        hourly=_ordered(figures.hourly_deletions(unique)),
        broken=_ordered(
            deletions(unique, frozen.export)
            .where("violation != ''")
            .groupBy("topic_id", "partition", "violation")
            .agg(F.count(F.lit(1)).alias("trims"), F.sum("deleted_bytes").alias("bytes"))
        ),
        ages=_ordered(figures.ages(due, as_of_us)),
        schedule=_ordered(figures.schedule(due, as_of_us)),
        gaps=gaps,
        conflicts=unique.where("conflict").count(),
        topic_of={
            (topic.number, topic.created_revision, partition): topic.topic_id
            for topic in frozen.topics
            for partition in range(topic.partitions)
        },
        names={
            row["topic_id"]: row["topic_name"]
            for row in _ordered(
                unique.groupBy("topic_id").agg(F.max("topic_name").alias("topic_name"))
            )
        },
    )


def _ordered(found: DataFrame) -> list[Row]:
    return sorted(found.collect(), key=_key)


def _key(row: Row) -> tuple[tuple[bool, int | str], ...]:
    """An order of rows that Spark's own does not change; nulls and numbers compare by kind."""
    return tuple((value is None, value if value is not None else 0) for value in row)
