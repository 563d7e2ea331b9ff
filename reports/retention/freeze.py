"""Freezes what a retention run reads, and archives it: the only source of every re-run.

    <uri>/inputs/<sha256>/
        inputs.json                files with SHA-256, offset ranges, the topics as they were named
        export.json                names, policies with their history, holds, and as_of; canonical
        offsets.json               how far every group had read, canonical
        retention-00000.parquet    `_retention`, decoded, by offset
        batches-00000.parquet      one row per stored batch of every user topic, in log order

Owns the order: `_retention` first, then the committed offsets, then the batches. So a trim that was
read removed nothing that the batches still show as live without being reported, and no commit is
compared with an older log. Refuses to compute anything.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headrace.evidence import canonical_json
from reports.errors import InputError, SourceError
from reports.files import digest, pending_folder, settle, write_parquet
from reports.input.freeze import (
    BATCHES_SCHEMA,
    SCHEMA,
    arranged,
    batch_ranges,
    offsets_range,
    read_files,
    short_name,
    stored_batches,
    verified,
)
from reports.retention.export import RetentionExport, retention_export_of
from reports.retention.offsets import Commit, Offsets, committed_offsets, offsets_of
from reports.retention.records import RETENTION_TOPIC, decoded
from reports.retention.records import SCHEMA as RETENTION_SCHEMA
from reports.source.cluster import ClusterReader, Handle
from reports.source.data_source import HeadraceSource, access_of, handle_text

KIND = "retention"


@dataclass(frozen=True, slots=True)
class FrozenRetention:
    """An archive whose every file was verified.

    topics: what existed. from_beginning: `_retention` still holds its first record.
    """

    folder: Path
    sha256: str
    export: RetentionExport
    topics: tuple[Handle, ...]
    offsets: Offsets
    from_beginning: bool

    @property
    def commits(self) -> Sequence[Commit]:
        """How far groups had read."""
        return self.offsets.commits

    def trims(self, spark: SparkSession) -> DataFrame:
        """One row per Trimmed of `_retention`, copies included: offset and its fields."""
        rows = read_files(spark, self.folder, "retention", RETENTION_SCHEMA)
        return rows.where(F.col("trimmed").isNotNull()).select("offset", "trimmed.*")

    def inventories(self, spark: SparkSession) -> DataFrame:
        """One row per Inventory of `_retention`, copies included: offset and its fields."""
        rows = read_files(spark, self.folder, "retention", RETENTION_SCHEMA)
        return rows.where(F.col("inventory").isNotNull()).select("offset", "inventory.*")

    def batches(self, spark: SparkSession) -> DataFrame:
        """One row per stored batch: topic (number), created_revision, partition, base_offset, .."""
        return read_files(spark, self.folder, "batches", BATCHES_SCHEMA)


def freeze_retention(
    spark: SparkSession, root: Path, export: RetentionExport, options: dict[str, str]
) -> FrozenRetention:
    """Read the cluster up to now and archive it. options: of the data source, without a topic."""
    spark.dataSource.register(HeadraceSource)
    source = spark.read.format("headrace").options(**options)
    with ClusterReader(access_of(options)) as cluster:
        retention, users = _split(cluster.topics())
        with pending_folder(root / "inputs") as folder:
            records = source.option("handles", handle_text(retention)).load()
            rows = decoded(records).repartition(1).sortWithinPartitions("offset")
            write_parquet(rows, folder, "retention")
            offsets = committed_offsets(cluster, _by_project(export, users))
            write_parquet(arranged(stored_batches(spark, options, users)), folder, "batches")
            return archive_retention(spark, root, folder, export, users, offsets)


def archive_retention(
    spark: SparkSession,
    root: Path,
    folder: Path,
    export: RetentionExport,
    topics: Sequence[Handle],
    offsets: Offsets,
) -> FrozenRetention:
    """Name, hash and settle a pending folder that holds the Parquet files of a freeze."""
    (folder / "export.json").write_bytes(export.canonical())
    (folder / "offsets.json").write_bytes(offsets.canonical())
    manifest = canonical_json(
        {
            "schema": SCHEMA,
            "kind": KIND,
            "files": [digest(path).entry() for path in sorted(folder.iterdir())],
            "retention": offsets_range(folder, "retention"),
            "batches": batch_ranges(read_files(spark, folder, "batches", BATCHES_SCHEMA)),
            "topics": [
                {
                    "id": topic.topic_id,
                    "name": topic.name,
                    "number": topic.number,
                    "created_revision": topic.created_revision,
                    "partitions": topic.partitions,
                }
                for topic in sorted(topics, key=lambda topic: topic.number)
            ],
        }
    )
    (folder / "inputs.json").write_bytes(manifest)
    sha256 = hashlib.sha256(manifest).hexdigest()
    settle(folder, root / "inputs" / sha256)
    return thawed_retention(root, sha256)


def thawed_retention(root: Path, sha256: str) -> FrozenRetention:
    """An archive by its SHA-256, every file verified. ARCHIVE_OF_ANOTHER_KIND for a bill's."""
    folder = verified(root, sha256)
    document = json.loads((folder / "inputs.json").read_bytes())
    if document.get("kind") != KIND:
        raise InputError(
            "ARCHIVE_OF_ANOTHER_KIND",
            f"The inputs {sha256} were not frozen for a retention report.",
            "Compute them with the command that froze them: python -m reports usage.",
        )
    topics = [
        Handle(row["name"], row["id"], row["number"], row["created_revision"], row["partitions"])
        for row in document["topics"]
    ]
    return FrozenRetention(
        folder,
        sha256,
        retention_export_of(json.loads((folder / "export.json").read_bytes())),
        tuple(topics),
        offsets_of(json.loads((folder / "offsets.json").read_bytes())),
        document["retention"]["start"] == 0,
    )


def _by_project(export: RetentionExport, topics: Sequence[Handle]) -> dict[str, list[Handle]]:
    """Topics by project id; one that the control plane does not know has no groups to be asked."""
    found: dict[str, list[Handle]] = {}
    for topic in topics:
        known = export.topics.get(topic.topic_id)
        if known is not None:
            found.setdefault(known.project_id, []).append(topic)
    return found


def _split(topics: list[Handle]) -> tuple[Handle, list[Handle]]:
    """`_retention`, and the topics of users."""
    found = [topic for topic in topics if short_name(topic) == RETENTION_TOPIC]
    if len(found) != 1:
        raise SourceError(
            "RETENTION_TOPIC_NOT_VISIBLE",
            f"The key sees {len(found)} topics named {RETENTION_TOPIC}; it must see exactly one.",
            "Run with the cluster's node key in HEADRACE_NODE_KEY.",
        )
    return found[0], [topic for topic in topics if not short_name(topic).startswith("_")]
