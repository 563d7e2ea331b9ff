"""The records of `_usage`: a version byte, then one protobuf message; here as columns.

Owns the decoding and its refusals. A record of an unknown version or kind stops the run: a bill
without it would be wrong and would look right. Refuses to drop copies or to sum: that is usage.py.
"""

from collections.abc import Iterator

import pyarrow as pa
from google.protobuf.message import DecodeError, Message
from pyspark.sql import DataFrame

from headrace.wire import usage_pb2
from reports.errors import InputError

USAGE_TOPIC = "_usage"
USAGE_VERSION = 1
# What a shard counts. Ingress is not among them: it comes from closes alone, exactly.
COUNTER_METERS = ("egress_bytes", "requests", "stored_byte_seconds")

_SUM = pa.struct(
    [
        ("principal", pa.int64()),
        ("principal_id", pa.string()),
        ("ingress_bytes", pa.int64()),
        ("records", pa.int64()),
        ("batches", pa.int64()),
    ]
)
_CLOSE = pa.struct(
    [
        ("topic", pa.int64()),
        ("created_revision", pa.int64()),
        ("partition", pa.int32()),
        ("sequence", pa.int64()),
        ("from_op", pa.int64()),
        ("to_op", pa.int64()),
        ("window_start_us", pa.int64()),
        ("window_end_us", pa.int64()),
        ("cluster_id", pa.string()),
        ("topic_id", pa.string()),
        ("topic_name", pa.string()),
        ("organization_id", pa.string()),
        ("project_id", pa.string()),
        ("sums", pa.list_(pa.field("element", _SUM))),
    ]
)
_COUNTER = pa.struct(
    [
        ("node_id", pa.string()),
        ("incarnation", pa.int64()),
        ("shard", pa.int64()),
        ("sequence", pa.int64()),
        ("topic", pa.int64()),
        ("principal", pa.int64()),
        ("meter", pa.string()),
        ("delta", pa.int64()),
        ("cumulative", pa.int64()),
        ("window_start_us", pa.int64()),
        ("window_end_us", pa.int64()),
        ("created_revision", pa.int64()),
        ("final", pa.bool_()),
        ("cluster_id", pa.string()),
        ("topic_id", pa.string()),
        ("topic_name", pa.string()),
        ("organization_id", pa.string()),
        ("project_id", pa.string()),
        ("principal_id", pa.string()),
    ]
)
ARROW = pa.schema([("offset", pa.int64()), ("close", _CLOSE), ("counter", _COUNTER)])


def ddl(kind: pa.DataType) -> str:
    """The Spark type of an Arrow type that this module uses."""
    if pa.types.is_struct(kind):
        return f"struct<{', '.join(f'{field.name}: {ddl(field.type)}' for field in kind)}>"
    if pa.types.is_list(kind):
        return f"array<{ddl(kind.value_type)}>"
    return {"int64": "bigint", "int32": "int", "string": "string", "bool": "boolean"}[str(kind)]


SCHEMA = ", ".join(f"{field.name} {ddl(field.type)}" for field in ARROW)


def decoded(records: DataFrame) -> DataFrame:
    """`_usage` records (offset, value) as rows (offset, close, counter); one of the two is null."""
    return records.select("offset", "value").mapInArrow(decode, SCHEMA)


def decode(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The worker's side of `decoded`."""
    for part in parts:
        rows = [
            _row(offset, value)
            for offset, value in zip(
                part.column(0).to_pylist(), part.column(1).to_pylist(), strict=True
            )
        ]
        yield pa.RecordBatch.from_pylist(rows, schema=ARROW)


def _row(offset: int, value: bytes | None) -> dict[str, object]:
    if not value or value[0] != USAGE_VERSION:
        raise InputError(
            "USAGE_VERSION_UNKNOWN",
            f"{USAGE_TOPIC} holds version {value[0] if value else 'none'} at offset {offset}.",
            "Run the reports of the release that wrote it.",
        )
    try:
        record = usage_pb2.UsageRecord.FromString(value[1:])
    except DecodeError:
        raise InputError(
            "USAGE_RECORD_DAMAGED",
            f"{USAGE_TOPIC} cannot be decoded at offset {offset}.",
            "Nothing may be billed from it: ask the operator which node wrote it.",
        ) from None
    kind = record.WhichOneof("record")
    if kind == "close":
        close = _fields(record.close, _CLOSE)
        close["sums"] = [_fields(one, _SUM) for one in record.close.sums]
        return {"offset": offset, "close": close}
    if kind == "counter" and record.counter.meter not in COUNTER_METERS:
        raise InputError(
            "USAGE_METER_UNKNOWN",
            f"{USAGE_TOPIC} counts {record.counter.meter!r} at offset {offset}.",
            "Run the reports of the release that wrote it.",
        )
    if kind == "counter":
        return {"offset": offset, "counter": _fields(record.counter, _COUNTER)}
    raise InputError(
        "USAGE_RECORD_UNKNOWN",
        f"{USAGE_TOPIC} holds a record of an unknown kind at offset {offset}.",
        "Run the reports of the release that wrote it.",
    )


def _fields(message: Message, kind: pa.StructType) -> dict[str, object]:
    return {field.name: getattr(message, field.name) for field in kind if field.name != "sums"}
