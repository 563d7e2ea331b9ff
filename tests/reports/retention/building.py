"""Synthetic records of `_retention`, batches, policies and holds, as a cluster leaves them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from reports.files import pending_folder, write_parquet
from reports.retention.export import RetentionExport, instant_text, retention_export_of
from reports.retention.freeze import FrozenRetention, archive_retention
from reports.retention.offsets import Commit, Offsets
from reports.retention.records import ARROW
from reports.source.cluster import Handle
from tests.reports.building import BATCH_SCHEMA, HOUR_US, TEN_US

MIB = 1 << 20
DAY_MS = 86_400_000
REVISION = 3


@dataclass(frozen=True, slots=True)
class Trim:
    """One trim of partition 0 of topic 16: offsets [first, last], appended and trimmed when."""

    sequence: int
    first: int
    last: int
    bytes: int = MIB
    cause: str = "size"
    newest_us: int = TEN_US
    trimmed_us: int = TEN_US + HOUR_US
    oldest_us: int | None = None
    version: int = 1
    topic: int = 16
    topic_id: str = "tp_flights"
    partition: int = 0
    records: int | None = None
    """Of the segments that went; None: all that became unreadable."""

    def row(self) -> dict[str, object]:
        """As `_retention` holds it."""
        return {
            "topic": self.topic,
            "created_revision": REVISION,
            "partition": self.partition,
            "trim_op": 10 * self.sequence,
            "policy_version": self.version,
            "cause": self.cause,
            "first_offset": self.first,
            "last_offset": self.last,
            "bytes": self.bytes,
            "records": self.last - self.first + 1 if self.records is None else self.records,
            "min_time_us": self.newest_us if self.oldest_us is None else self.oldest_us,
            "max_time_us": self.newest_us,
            "sequence": self.sequence,
            "trimmed_at_us": self.trimmed_us,
            "segments": 1,
            "cluster_id": "cl_local",
            "topic_id": self.topic_id,
            "topic_name": f"default/{self.topic_id.removeprefix('tp_')}",
            "organization_id": "org_acme",
            "project_id": "prj_default",
        }


@dataclass(frozen=True, slots=True)
class Picture:
    """One inventory of a partition."""

    at_us: int = TEN_US
    log_start: int = 0
    log_end: int = 0
    held_from: int | None = None
    held_bytes: int = 0
    expires_us: int = 0
    retention_ms: int = 7 * DAY_MS
    retention_bytes: int = -1
    retention_ms_min: int = 0
    newest_us: int = TEN_US
    topic: int = 16
    topic_id: str = "tp_flights"
    partition: int = 0

    def row(self) -> dict[str, object]:
        """As `_retention` holds it."""
        return {
            "topic": self.topic,
            "created_revision": REVISION,
            "partition": self.partition,
            "at_us": self.at_us,
            "log_start": self.log_start,
            "log_end": self.log_end,
            "bytes": 0,
            "records": self.log_end - self.log_start,
            "oldest_us": TEN_US,
            "newest_us": self.newest_us,
            "expires_us": self.expires_us,
            "held": self.held_from is not None,
            "held_from": self.held_from or 0,
            "hold_intent_op": 0,
            "held_bytes": self.held_bytes,
            "policy_version": 1,
            "retention_ms": self.retention_ms,
            "retention_bytes": self.retention_bytes,
            "retention_ms_min": self.retention_ms_min,
            "cluster_id": "cl_local",
            "topic_id": self.topic_id,
            "topic_name": f"default/{self.topic_id.removeprefix('tp_')}",
            "organization_id": "org_acme",
            "project_id": "prj_default",
        }


@dataclass(frozen=True, slots=True)
class Stored:
    """One batch, of ten records."""

    size: int
    append_us: int
    base: int = 0
    cumulative: int = 0
    topic: int = 16
    partition: int = 0
    records: int = 10

    def row(self) -> dict[str, object]:
        """As the archive holds it."""
        return {
            "topic": self.topic,
            "created_revision": REVISION,
            "partition": self.partition,
            "base_offset": self.base,
            "record_count": self.records,
            "stored_bytes": self.size,
            "principal": 16,
            "append_time_us": self.append_us,
            "op": 1 + self.base,
            "cumulative_bytes": self.cumulative,
        }


def log_of(
    batches: Sequence[tuple[int, int]], *, base: int = 0, before: int = 0, topic: int = 16
) -> list[Stored]:
    """Batches of (bytes, append time) end to end, from offset `base` on."""
    found = []
    for index, (size, append_us) in enumerate(batches):
        before += size
        found.append(Stored(size, append_us, base + 10 * index, before, topic))
    return found


def policy(topic_id: str = "tp_flights", **limits: object) -> dict[str, object]:
    """A policy as the control plane exports it: a week by default."""
    return {
        "topic_id": topic_id,
        "generation": "1",
        "changed_at": instant_text(TEN_US - HOUR_US),
        "by": "key_owner",
        "retention_ms": str(7 * DAY_MS),
        "retention_bytes": "-1",
        "min_retention_ms": "0",
        "segment_bytes": str(MIB),
        "sources": {"retention_ms": "default", "retention_bytes": "default"},
        **limits,
    }


def hold(hold_id: str = "hold_1", **fields: object) -> dict[str, object]:
    """A hold of the whole topic, as the control plane exports it."""
    return {
        "id": hold_id,
        "topic_id": "tp_flights",
        "partition": None,
        "from_offset": None,
        "case_id": "case-7",
        "owner": "key_owner",
        "reason": "an audit",
        "state": "ACTIVE",
        "created_at": instant_text(TEN_US),
        "activated_at": instant_text(TEN_US),
        "released_at": None,
        "released_by": None,
        **fields,
    }


def answer(
    as_of_us: int = TEN_US + 2 * HOUR_US,
    policies: Sequence[dict[str, object]] = (),
    holds: Sequence[dict[str, object]] = (),
    topics: Sequence[str] = ("flights",),
    organization: str = "acme",
) -> dict[str, object]:
    """What the control plane answers."""
    return {
        "as_of": instant_text(as_of_us),
        "organizations": [{"id": "org_acme", "name": organization}],
        "projects": [{"id": "prj_default", "organization_id": "org_acme", "name": "default"}],
        "streams": [{"id": "st_default", "project_id": "prj_default", "name": "default"}],
        "topics": [
            {"id": f"tp_{name}", "stream_id": "st_default", "name": name} for name in topics
        ],
        "api_keys": [{"id": "key_owner", "name": "owner"}],
        "policies": list(policies) or [policy()],
        "holds": list(holds),
    }


def export(**fields: object) -> RetentionExport:
    """`answer`, checked."""
    return retention_export_of(answer(**fields))  # type: ignore[arg-type]


def handles(topics: Sequence[str] = ("flights",), partitions: int = 1) -> list[Handle]:
    """Topics as the cluster describes them; numbers begin at 16."""
    return [
        Handle(f"default/{name}", f"tp_{name}", 16 + index, REVISION, partitions)
        for index, name in enumerate(topics)
    ]


def records_frame(
    spark: SparkSession, trims: Sequence[Trim], pictures: Sequence[Picture] = ()
) -> DataFrame:
    """`_retention` as it is frozen."""
    found: list[dict[str, object]] = [{"trimmed": trim.row()} for trim in trims]
    found += [{"inventory": picture.row()} for picture in pictures]
    rows = [{"offset": offset, **row} for offset, row in enumerate(found)]
    return spark.createDataFrame(pa.Table.from_pylist(rows, schema=ARROW))


def trims_frame(spark: SparkSession, trims: Sequence[Trim]) -> DataFrame:
    """Trims in `_retention` order, as FrozenRetention.trims gives them."""
    return records_frame(spark, trims).select("offset", "trimmed.*")


def batches_frame(spark: SparkSession, batches: Sequence[Stored]) -> DataFrame:
    """Batch headers, as FrozenRetention.batches gives them."""
    rows = [batch.row() for batch in batches]
    return spark.createDataFrame(pa.Table.from_pylist(rows, schema=BATCH_SCHEMA))


def frozen(
    spark: SparkSession,
    root: Path,
    *,
    trims: Sequence[Trim] = (),
    pictures: Sequence[Picture] = (),
    batches: Sequence[Stored] = (),
    names: RetentionExport | None = None,
    topics: Sequence[Handle] = (),
    commits: Sequence[Commit] = (),
) -> FrozenRetention:
    """An archive of all this."""
    records = records_frame(spark, trims, pictures)
    headers = batches_frame(spark, batches)
    with pending_folder(root / "inputs") as folder:
        write_parquet(records.repartition(1).sortWithinPartitions("offset"), folder, "retention")
        write_parquet(headers.repartition(1).sortWithinPartitions("topic", "op"), folder, "batches")
        return archive_retention(
            spark,
            root,
            folder,
            names or export(),
            list(topics) or handles(),
            Offsets(tuple(commits), complete=True),
        )
