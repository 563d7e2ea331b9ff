"""Freezes what a run reads, and archives it: the only source of every figure and every re-run.

    <uri>/inputs/<sha256>/
        inputs.json             files with SHA-256, offset ranges; its own SHA-256 names the folder
        export.json             names and prices, canonical
        usage-00000.parquet     `_usage`, decoded, by offset
        batches-00000.parquet   one row per stored batch of every user topic, in log order

Owns the order of freezing: `_usage` first, then the batches, so that every close that was read
covers only batches that are read too. The folder is content-addressed: equal inputs meet in one
folder. Refuses to compute anything from them.
"""

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from headrace.evidence import canonical_json
from reports.errors import InputError, SourceError
from reports.files import digest, pending_folder, settle, write_parquet
from reports.input.export import Export, export_of
from reports.input.usage_records import SCHEMA as USAGE_SCHEMA
from reports.input.usage_records import USAGE_TOPIC, decoded
from reports.source.cluster import ClusterReader, Handle
from reports.source.columns import BATCHES
from reports.source.data_source import HeadraceSource, access_of, handle_text

SCHEMA = 1
BATCHES_SCHEMA = StructType(
    [StructField("topic", LongType()), *(field for field in BATCHES if field.name[:5] != "topic")]
)
BATCHES_PER_FILE = 4_000_000


@dataclass(frozen=True, slots=True)
class Frozen:
    """An archive whose every file was verified."""

    folder: Path
    sha256: str
    export: Export
    usage_from_beginning: bool
    has_counters: bool
    """Whether `_usage` held any: without them three passes over it are saved."""

    def closes(self, spark: SparkSession) -> DataFrame:
        """One row per close of `_usage`, copies included: offset and the fields of Close."""
        rows = read_files(spark, self.folder, "usage", USAGE_SCHEMA)
        return rows.where(F.col("close").isNotNull()).select("offset", "close.*")

    def counters(self, spark: SparkSession) -> DataFrame:
        """One row per counter of `_usage`, copies included: offset and the fields of Counter."""
        rows = read_files(spark, self.folder, "usage", USAGE_SCHEMA)
        return rows.where(F.col("counter").isNotNull()).select("offset", "counter.*")

    def batches(self, spark: SparkSession) -> DataFrame:
        """One row per stored batch: topic (number), created_revision, partition, base_offset, .."""
        return read_files(spark, self.folder, "batches", BATCHES_SCHEMA)


def freeze(spark: SparkSession, root: Path, export: Export, options: dict[str, str]) -> Frozen:
    """Read the cluster up to now and archive it. options: of the data source, without a topic."""
    spark.dataSource.register(HeadraceSource)
    with ClusterReader(access_of(options)) as cluster:
        usage, users = _split(cluster.topics())
    source = spark.read.format("headrace").options(**options)
    with pending_folder(root / "inputs") as folder:
        records = source.option("handles", handle_text(usage)).load()
        rows = decoded(records).repartition(1).sortWithinPartitions("offset")
        write_parquet(rows, folder, "usage")
        write_parquet(arranged(stored_batches(spark, options, users)), folder, "batches")
        return archive(spark, root, folder, export)


def archive(spark: SparkSession, root: Path, folder: Path, export: Export) -> Frozen:
    """Name, hash and settle a pending folder that holds the Parquet files of `freeze`."""
    (folder / "export.json").write_bytes(export.canonical())
    manifest = canonical_json(
        {
            "schema": SCHEMA,
            "files": [digest(path).entry() for path in sorted(folder.iterdir())],
            "usage": offsets_range(folder, "usage"),
            "batches": batch_ranges(read_files(spark, folder, "batches", BATCHES_SCHEMA)),
        }
    )
    (folder / "inputs.json").write_bytes(manifest)
    sha256 = hashlib.sha256(manifest).hexdigest()
    settle(folder, root / "inputs" / sha256)
    return thawed(root, sha256)


def thawed(root: Path, sha256: str) -> Frozen:
    """An archive by its SHA-256, every file verified."""
    folder = verified(root, sha256)
    document = json.loads((folder / "inputs.json").read_bytes())
    export = export_of(json.loads((folder / "export.json").read_bytes()))
    from_beginning = document["usage"]["start"] == 0
    return Frozen(folder, sha256, export, from_beginning, _has_counters(folder))


def verified(root: Path, sha256: str) -> Path:
    """The folder of an archive, every file verified."""
    folder = root / "inputs" / sha256
    if not re.fullmatch(r"[0-9a-f]{64}", sha256) or not folder.is_dir():
        raise InputError(
            "ARCHIVE_MISSING",
            f"There are no frozen inputs {sha256}.",
            "Run without --inputs to freeze the present ones.",
        )
    _verify(folder, "inputs.json", sha256)
    document = json.loads((folder / "inputs.json").read_bytes())
    if document["schema"] != SCHEMA:
        raise InputError(
            "ARCHIVE_VERSION_UNKNOWN",
            f"The inputs {sha256} have schema {document['schema']}.",
            "Run the reports of the release that froze them.",
        )
    for entry in document["files"]:
        _verify(folder, entry["name"], entry["sha256"])
    listed = {"inputs.json", *(entry["name"] for entry in document["files"])}
    for path in sorted(folder.iterdir()):
        # Files are read by pattern: one that was not frozen would be taken for one that was.
        if path.name not in listed:
            raise _damaged(path.name, sha256)
    return folder


def _verify(folder: Path, name: str, sha256: str) -> None:
    path = folder / name
    if not path.is_file() or digest(path).sha256 != sha256:
        raise _damaged(name, folder.name)


def _damaged(name: str, sha256: str) -> InputError:
    return InputError(
        "ARCHIVE_DAMAGED",
        f"{name} of the inputs {sha256} is not what was frozen.",
        "Restore the folder from a copy; figures are never computed from changed inputs.",
    )


def _split(topics: list[Handle]) -> tuple[Handle, list[Handle]]:
    """`_usage`, and the topics of users.

    Reserved names begin with an underscore and are never billed.
    """
    usage = [topic for topic in topics if short_name(topic) == USAGE_TOPIC]
    if len(usage) != 1:
        raise SourceError(
            "USAGE_TOPIC_NOT_VISIBLE",
            f"The key sees {len(usage)} topics named {USAGE_TOPIC}; it must see exactly one.",
            "Run with the cluster's node key in HEADRACE_NODE_KEY.",
        )
    return usage[0], [topic for topic in topics if not short_name(topic).startswith("_")]


def short_name(topic: Handle) -> str:
    """The name without its stream."""
    return topic.name.rpartition("/")[2]


def stored_batches(spark: SparkSession, options: dict[str, str], topics: list[Handle]) -> DataFrame:
    """The headers of every batch of these topics, as far as the log goes now.

    A topic that is deleted while it is read is as absent as one that was deleted before: half of
    its batches would look like a loss.
    """
    if not topics:
        return spark.createDataFrame([], BATCHES)
    source = spark.read.format("headrace").options(**options)
    read = (
        source.option("handles", ",".join(map(handle_text, topics)))
        .option("columns", "batches")
        .option("truncated", "skip")
        .load()
        .cache()
    )
    read.count()
    with ClusterReader(access_of(options)) as cluster:
        there = [(each.number, each.created_revision) for each in cluster.topics()]
    left = spark.createDataFrame(there, "topic_number long, created_revision long")
    keys = ["topic_number", "created_revision"]
    return read.join(F.broadcast(left), keys, "left_semi").select(*read.columns)


def arranged(batches: DataFrame) -> DataFrame:
    """Sorted, in a number of files that depends on the batches only, never on the machine."""
    renamed = batches.drop("topic").withColumnRenamed("topic_number", "topic")
    order = ["topic", "created_revision", "partition", "base_offset"]
    files = 1 + renamed.count() // BATCHES_PER_FILE
    keys = order if files > 1 else []
    return renamed.repartition(files, *keys).sortWithinPartitions(*order)


def read_files(spark: SparkSession, folder: Path, name: str, schema: str | StructType) -> DataFrame:
    """The files `name-*.parquet` of an archive."""
    paths = sorted(folder.glob(f"{name}-*.parquet"))
    return spark.read.schema(schema).parquet(*(path.as_uri() for path in paths))


def offsets_range(folder: Path, name: str) -> dict[str, object]:
    """Offsets [start, end) of the frozen records; an empty topic was frozen from its beginning."""
    found = []
    for path in sorted(folder.glob(f"{name}-*.parquet")):
        metadata = pq.read_metadata(path)
        for group in range(metadata.num_row_groups):
            offsets = metadata.row_group(group).column(0).statistics
            found += [offsets.min, offsets.max]
    return {"start": min(found, default=0), "end": max(found, default=-1) + 1}


def _has_counters(folder: Path) -> bool:
    """From the footers alone: whether some value of a counter is not null."""
    for path in sorted(folder.glob("usage-*.parquet")):
        with pq.ParquetFile(path) as file:
            names = [file.schema.column(index).path for index in range(len(file.schema))]
            place = names.index("counter.delta")
            for group in range(file.metadata.num_row_groups):
                column = file.metadata.row_group(group).column(place)
                if column.statistics.null_count < column.num_values:
                    return True
    return False


def batch_ranges(batches: DataFrame) -> list[dict[str, object]]:
    """Offsets [start, end) of the frozen batches of each partition."""
    keys = ["topic", "created_revision", "partition"]
    found = batches.groupBy(*keys).agg(
        F.min("base_offset").alias("start"),
        F.max(F.col("base_offset") + F.col("record_count")).alias("end"),
    )
    return [row.asDict() for row in found.orderBy(*keys).collect()]
