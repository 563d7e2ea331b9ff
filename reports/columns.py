"""Stored batches as Arrow columns, for Spark.

Owns the two shapes a log can be read in and their schemas. Builds every column from lists or
buffers that the codec made in one go; no record is touched by Python code of its own, except those
that carry headers. Refuses to know where the batches came from.
"""

from collections.abc import Iterable

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
from reports.cluster import Range

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
    """One row per stored batch that begins inside the range; the payload is not decoded."""
    chosen = [batch for batch in found if source.start <= batch.base_offset < source.end]
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


def record_rows(source: Range, batch: Batch, *, payload: bool) -> pa.RecordBatch:
    """One row per record of the batch whose offset lies inside the range."""
    decoded = decode(batch)
    first = max(0, source.start - batch.base_offset)
    last = min(batch.record_count, source.end - batch.base_offset)
    count = max(0, last - first)
    columns = [
        _constant(source.handle.name, count, pa.string()),
        _constant(source.partition, count, pa.int32()),
        pa.array(decoded.offsets[first:last], pa.int64()),
        pa.array(decoded.timestamps_us[first:last], pa.int64()).cast(pa.timestamp("us", tz="UTC")),
    ]
    if not payload:
        return pa.RecordBatch.from_arrays(columns, schema=pa.schema(list(_RECORDS_ARROW)[:4]))
    columns += [
        pa.array(decoded.keys[first:last], pa.binary()),
        pa.array(decoded.values[first:last], pa.binary()),
        pa.array(
            [
                [{"name": name, "value": value} for name, value in decoded.headers(index)]
                for index in range(first, first + count)
            ],
            HEADERS,
        ),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_RECORDS_ARROW)


def _constant(value: object, count: int, kind: pa.DataType) -> pa.Array:
    return pa.repeat(pa.scalar(value, kind), count)
