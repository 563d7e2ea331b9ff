"""Synthetic inputs: closes, batches, names and prices, as a cluster would have left them."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from reports.files import pending_folder, write_parquet
from reports.input.export import Export, export_of
from reports.input.freeze import Frozen, archive
from reports.input.usage_records import ARROW

# 2026-11-27T10:00:00Z
TEN_US = 1_795_773_600_000_000
MINUTE_US = 60_000_000
HOUR_US = 60 * MINUTE_US

BATCH_SCHEMA = pa.schema(
    [
        ("topic", pa.int64()),
        ("created_revision", pa.int64()),
        ("partition", pa.int32()),
        *(
            (name, pa.int64())
            for name in (
                "base_offset",
                "record_count",
                "stored_bytes",
                "principal",
                "append_time_us",
                "op",
                "cumulative_bytes",
            )
        ),
    ]
)


@dataclass(frozen=True, slots=True)
class Sum:
    """What one key wrote in a window."""

    ingress_bytes: int
    records: int
    principal_id: str = "key_loader"
    principal: int = 16

    def row(self) -> dict[str, object]:
        """As a close holds it."""
        return {
            "principal": self.principal,
            "principal_id": self.principal_id,
            "ingress_bytes": self.ingress_bytes,
            "records": self.records,
            "batches": 1,
        }


@dataclass(frozen=True, slots=True)
class Close:
    """One close of topic 16; ops are two a window: the batch and the close itself."""

    sequence: int
    sums: tuple[Sum, ...]
    start_us: int = TEN_US
    end_us: int = TEN_US + MINUTE_US
    partition: int = 0
    topic: int = 16
    topic_id: str = "tp_flights"
    topic_name: str = "default/flights"
    from_op: int | None = None
    to_op: int | None = None

    def row(self, offset: int) -> dict[str, object]:
        """As `_usage` holds it at `offset`."""
        return {
            "offset": offset,
            "close": {
                "topic": self.topic,
                "created_revision": 3,
                "partition": self.partition,
                "sequence": self.sequence,
                "from_op": 2 * self.sequence - 1 if self.from_op is None else self.from_op,
                "to_op": 2 * self.sequence if self.to_op is None else self.to_op,
                "window_start_us": self.start_us,
                "window_end_us": self.end_us,
                "cluster_id": "cl_local",
                "topic_id": self.topic_id,
                "topic_name": self.topic_name,
                "organization_id": "org_acme",
                "project_id": "prj_default",
                "sums": [one.row() for one in self.sums],
            },
        }


@dataclass(frozen=True, slots=True)
class Counter:
    """One counter of topic 16: what a shard counted in a window."""

    sequence: int
    delta: int
    cumulative: int
    meter: str = "egress_bytes"
    incarnation: int = 1
    shard: int = 0
    start_us: int = TEN_US
    end_us: int = TEN_US + 10_000_000
    principal_id: str = "key_loader"
    principal: int = 16
    final: bool = False
    topic_id: str = "tp_flights"
    organization_id: str = "org_acme"
    node_id: str = "nd_one"

    def row(self, offset: int) -> dict[str, object]:
        """As `_usage` holds it at `offset`."""
        return {
            "offset": offset,
            "counter": {
                "node_id": self.node_id,
                "incarnation": self.incarnation,
                "shard": self.shard,
                "sequence": self.sequence,
                "topic": 16,
                "principal": self.principal if self.principal_id else 0,
                "meter": self.meter,
                "delta": self.delta,
                "cumulative": self.cumulative,
                "window_start_us": self.start_us,
                "window_end_us": self.end_us,
                "created_revision": 3,
                "final": self.final,
                "cluster_id": "cl_local",
                "topic_id": self.topic_id,
                "topic_name": "default/flights",
                "organization_id": self.organization_id,
                "project_id": "prj_default",
                "principal_id": self.principal_id,
            },
        }


def minutes(quantities: Iterable[tuple[int, int]]) -> list[Close]:
    """Consecutive one-minute windows of (bytes, records) each, from 10:00."""
    return [
        Close(
            sequence=index + 1,
            sums=(Sum(size, count),),
            start_us=TEN_US + index * MINUTE_US,
            end_us=TEN_US + (index + 1) * MINUTE_US,
        )
        for index, (size, count) in enumerate(quantities)
    ]


def batches_of(closes: Sequence[Close]) -> list[dict[str, object]]:
    """The stored batches that these closes were computed from, one per close."""
    rows: list[dict[str, object]] = []
    ends: dict[tuple[int, int], tuple[int, int]] = {}
    for close in closes:
        place = (close.topic, close.partition)
        offset, cumulative = ends.get(place, (0, 0))
        size = sum(one.ingress_bytes for one in close.sums)
        count = sum(one.records for one in close.sums)
        ends[place] = (offset + count, cumulative + size)
        rows.append(
            {
                "topic": close.topic,
                "created_revision": 3,
                "partition": close.partition,
                "base_offset": offset,
                "record_count": count,
                "stored_bytes": size,
                "principal": 16,
                "append_time_us": close.start_us + 1,
                "op": 2 * close.sequence - 1 if close.from_op is None else close.from_op,
                "cumulative_bytes": cumulative + size,
            }
        )
    return rows


PRICES = (
    ("ingress_bytes", "GiB", 1 << 30, "0.05"),
    ("partition_seconds", "partition-hour", 3600, "0.002"),
    ("egress_bytes", "GiB", 1 << 30, "0"),
    ("requests", "million requests", 1_000_000, "0"),
    ("stored_byte_seconds", "GiB-hour", 3600 << 30, "0"),
    ("node_seconds", "node-hour", 3600, "1"),
)


def export(unit_price: str = "0.05", **names: str) -> Export:
    """One organization with one topic; `names` replaces the name of organization, topic, ...

    as_of, minimum: up to when the topic's two partitions are known, from 10:00 on, and the monthly
    minimum; without them the export says nothing of either, as that of an older release.
    """
    organization = names.get("organization", "acme")
    known: dict[str, object] = {}
    if "as_of" in names:
        known = {"as_of": names["as_of"], "topic_lifecycle": [span("tp_flights", 2)]}
    made = {"created_at": "2026-11-27T09:30:00Z"} if "as_of" in names else {}
    return export_of(
        {
            **known,
            "organizations": [{"id": "org_acme", "name": organization, **made}],
            "projects": [
                {"id": "prj_default", "organization_id": "org_acme", "name": "default"},
            ],
            "clusters": [{"id": "cl_local", "name": "local"}],
            "streams": [{"id": "st_default", "project_id": "prj_default", "name": "default"}],
            "topics": [
                {
                    "id": "tp_flights",
                    "stream_id": "st_default",
                    "name": names.get("topic", "flights"),
                }
            ],
            "api_keys": [{"id": "key_loader", "name": "loader"}],
            "price_book": {
                "version": "demo-1",
                "currency": "EUR",
                "monthly_minimum": names.get("minimum", "0"),
                "prices": [
                    {
                        "meter": meter,
                        "unit": unit,
                        "unit_quantity": size,
                        "unit_price": unit_price if meter == "ingress_bytes" else price,
                    }
                    for meter, unit, size, price in PRICES
                ],
            },
        }
    )


def span(
    topic_id: str,
    partitions: int,
    start: str = "2026-11-27T10:00:00Z",
    until: str | None = None,
    generation: int = 1,
) -> dict[str, object]:
    """A topic's number of partitions over a time, as the control plane exports it."""
    return {
        "topic_id": topic_id,
        "organization_id": "org_acme",
        "project_id": "prj_default",
        "cluster_id": "cl_local",
        "generation": generation,
        "partitions": partitions,
        "from": start,
        "until": until,
    }


def closes_frame(spark: SparkSession, closes: Sequence[Close]) -> DataFrame:
    """Closes in `_usage` order, as inputs.Frozen.closes gives them."""
    rows = [close.row(offset) for offset, close in enumerate(closes)]
    table = pa.Table.from_pylist(rows, schema=ARROW)
    return spark.createDataFrame(table).select("offset", "close.*")


def counters_frame(spark: SparkSession, counters: Sequence[Counter]) -> DataFrame:
    """Counters in `_usage` order, as inputs.Frozen.counters gives them."""
    rows = [counter.row(offset) for offset, counter in enumerate(counters)]
    table = pa.Table.from_pylist(rows, schema=ARROW)
    return spark.createDataFrame(table).select("offset", "counter.*")


def batches_frame(spark: SparkSession, rows: Sequence[dict[str, object]]) -> DataFrame:
    """Batch headers, as inputs.Frozen.batches gives them."""
    return spark.createDataFrame(pa.Table.from_pylist(list(rows), schema=BATCH_SCHEMA))


def frozen(
    spark: SparkSession,
    root: Path,
    closes: Sequence[Close],
    batches: Sequence[dict[str, object]] | None = None,
    names: Export | None = None,
    counters: Sequence[Counter] = (),
    order: random.Random | None = None,
) -> Frozen:
    """An archive of these closes, counters, and batches (by default the ones that fit).

    order: in which they are read; what they are, and where in their logs, does not change.
    """
    records: list[Close | Counter] = [*closes, *counters]
    rows = [record.row(offset) for offset, record in enumerate(records)]
    batches = batches_of(closes) if batches is None else batches
    if order is not None:
        rows, batches = order.sample(rows, len(rows)), order.sample(batches, len(batches))
    usage = spark.createDataFrame(pa.Table.from_pylist(rows, schema=ARROW))
    headers = batches_frame(spark, batches)
    with pending_folder(root / "inputs") as folder:
        write_parquet(usage.repartition(1).sortWithinPartitions("offset"), folder, "usage")
        places = ("topic", "partition", "op")
        write_parquet(headers.repartition(1).sortWithinPartitions(*places), folder, "batches")
        return archive(spark, root, folder, names or export())
