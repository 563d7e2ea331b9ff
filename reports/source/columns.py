"""Stored batches as Arrow columns, for Spark.

Owns the two shapes a log can be read in, their schemas, and how many rows travel together. Columns
are built from the lists and buffers that the codec made in one go. Refuses to know where the
batches came from.
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from headrace.codec import Batch, decode
from reports.source.cluster import Range

# 8 MiB of records are a few of the chunks that Spark itself would make of rows (10,000 each).
CHUNK_BYTES = 8 << 20

HEADERS = pa.list_(pa.field("element", pa.struct([("name", pa.string()), ("value", pa.binary())])))

RECORDS = StructType(
    [
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField(
            "headers",
            ArrayType(
                StructType([StructField("name", StringType()), StructField("value", BinaryType())])
            ),
        ),
    ]
)
RECORDS_WITHOUT_PAYLOAD = StructType(RECORDS.fields[:4])

BATCHES = StructType(
    [
        StructField("topic", StringType()),
        StructField("topic_number", LongType()),
        StructField("created_revision", LongType()),
        StructField("partition", IntegerType()),
        StructField("base_offset", LongType()),
        StructField("record_count", LongType()),
        StructField("stored_bytes", LongType()),
        StructField("principal", LongType()),
        StructField("append_time_us", LongType()),
        StructField("op", LongType()),
        StructField("cumulative_bytes", LongType()),
    ]
)

_PLACE = [("topic", pa.string()), ("partition", pa.int32())]
_RECORDS_ARROW = pa.schema(
    [
        *_PLACE,
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", HEADERS),
    ]
)
_BATCHES_ARROW = pa.schema(
    [
        ("topic", pa.string()),
        ("topic_number", pa.int64()),
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


def header_rows(source: Range, found: Iterable[Batch]) -> pa.RecordBatch:
    """One row per stored batch that begins inside the range; the payload is not decoded.

    A batch that the log's start cuts belongs to the range that leads: it is stored whole.
    """
    first = 0 if source.leads else source.start
    chosen = [batch for batch in found if first <= batch.base_offset < source.end]
    count = len(chosen)
    columns = [
        _constant(source.handle.name, count, pa.string()),
        _constant(source.handle.number, count, pa.int64()),
        _constant(source.handle.created_revision, count, pa.int64()),
        _constant(source.partition, count, pa.int32()),
        pa.array([batch.base_offset for batch in chosen], pa.int64()),
        pa.array([batch.record_count for batch in chosen], pa.int64()),
        pa.array([batch.size_bytes for batch in chosen], pa.int64()),
        pa.array([batch.principal for batch in chosen], pa.int64()),
        pa.array([batch.append_time_us for batch in chosen], pa.int64()),
        pa.array([batch.op for batch in chosen], pa.int64()),
        pa.array([batch.cumulative_bytes for batch in chosen], pa.int64()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_BATCHES_ARROW)


def record_rows(
    source: Range, found: Iterable[Batch], *, payload: bool
) -> Iterator[pa.RecordBatch]:
    """One row per record whose offset lies inside the range, many batches to a RecordBatch.

    Small batches are gathered, since what a RecordBatch costs on its way into the JVM does not
    depend on its rows; a chunk ends at CHUNK_BYTES of records before compression.
    """
    chunk = _Chunk(source, payload)
    for batch in found:
        chunk.add(batch)
        if chunk.size_bytes >= CHUNK_BYTES:
            yield chunk.rows()
            chunk = _Chunk(source, payload)
    if chunk.size_bytes:
        yield chunk.rows()


class _Chunk:
    """Columns of some batches of one range."""

    def __init__(self, source: Range, payload: bool) -> None:
        self._source = source
        self._payload = payload
        self._offsets: array[int] = array("q")
        self._timestamps_us: array[int] = array("q")
        self._keys: list[bytes | None] = []
        self._values: list[bytes | None] = []
        self._headers: list[list[tuple[str, bytes | None]]] = []
        self.size_bytes = 0

    def add(self, batch: Batch) -> None:
        """The batch's records, cut to the range."""
        decoded = decode(batch)
        first = max(0, self._source.start - batch.base_offset)
        last = max(first, min(batch.record_count, self._source.end - batch.base_offset))
        self.size_bytes += batch.records_bytes
        self._offsets += decoded.offsets[first:last]
        self._timestamps_us += decoded.timestamps_us[first:last]
        if self._payload:
            self._keys += decoded.keys[first:last]
            self._values += decoded.values[first:last]
            self._headers += [decoded.headers(index) for index in range(first, last)]

    def rows(self) -> pa.RecordBatch:
        """What was added, as Arrow."""
        count = len(self._offsets)
        times = pa.array(self._timestamps_us, pa.int64()).cast(pa.timestamp("us", tz="UTC"))
        columns = [
            _constant(self._source.handle.name, count, pa.string()),
            _constant(self._source.partition, count, pa.int32()),
            pa.array(self._offsets, pa.int64()),
            times,
        ]
        if not self._payload:
            return pa.RecordBatch.from_arrays(columns, schema=pa.schema(list(_RECORDS_ARROW)[:4]))
        columns += [
            pa.array(self._keys, pa.binary()),
            pa.array(self._values, pa.binary()),
            _headers(self._headers),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=_RECORDS_ARROW)


def _headers(rows: Sequence[Sequence[tuple[str, bytes | None]]]) -> pa.Array:
    """A list column from its ends and its flat items."""
    ends = array("i", [0, *accumulate(map(len, rows))])
    names = pa.array([name for row in rows for name, _ in row], pa.string())
    values = pa.array([value for row in rows for _, value in row], pa.binary())
    items = pa.StructArray.from_arrays([names, values], fields=list(HEADERS.value_type))
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), items, type=HEADERS)


def _constant(value: object, count: int, kind: pa.DataType) -> pa.Array:
    return pa.repeat(pa.scalar(value, kind), count)
