"""The records of `_retention`: a version byte, then one protobuf message; here as columns.

Owns the decoding and its refusals. A record of an unknown version or kind stops the run: a report
without it would say that nothing was deleted there, and would look right. Refuses to drop copies or
to sum: that is figures.py.
"""

from collections.abc import Iterator

import pyarrow as pa
from google.protobuf.message import DecodeError, Message
from pyspark.sql import DataFrame

from headrace.wire import usage_pb2
from reports.errors import InputError
from reports.input.usage_records import ddl

RETENTION_TOPIC = "_retention"
RETENTION_VERSION = 1

_PLACE = [("topic", pa.int64()), ("created_revision", pa.int64()), ("partition", pa.int32())]
_OWNER = [
    (name, pa.string())
    for name in ("cluster_id", "topic_id", "topic_name", "organization_id", "project_id")
]
TRIMMED = pa.struct(
    [
        *_PLACE,
        ("trim_op", pa.int64()),
        ("policy_version", pa.int64()),
        ("cause", pa.string()),
        *(
            (name, pa.int64())
            for name in (
                "first_offset",
                "last_offset",
                "bytes",
                "records",
                "min_time_us",
                "max_time_us",
                "sequence",
                "trimmed_at_us",
                "segments",
            )
        ),
        *_OWNER,
    ]
)
INVENTORY = pa.struct(
    [
        *_PLACE,
        *(
            (name, pa.int64())
            for name in (
                "at_us",
                "log_start",
                "log_end",
                "bytes",
                "records",
                "oldest_us",
                "newest_us",
                "expires_us",
            )
        ),
        ("held", pa.bool_()),
        *(
            (name, pa.int64())
            for name in (
                "held_from",
                "hold_intent_op",
                "held_bytes",
                "policy_version",
                "retention_ms",
                "retention_bytes",
                "retention_ms_min",
            )
        ),
        *_OWNER,
    ]
)
ARROW = pa.schema([("offset", pa.int64()), ("trimmed", TRIMMED), ("inventory", INVENTORY)])
SCHEMA = ", ".join(f"{field.name} {ddl(field.type)}" for field in ARROW)


def decoded(records: DataFrame) -> DataFrame:
    """`_retention` records (offset, value) as rows (offset, trimmed, inventory); one is null."""
    return records.select("offset", "value").mapInArrow(decode, SCHEMA)


def decode(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The worker's side of `decoded`."""
    for part in parts:
        columns = (part.column(0).to_pylist(), part.column(1).to_pylist())
        rows = [_row(offset, value) for offset, value in zip(*columns, strict=True)]
        yield pa.RecordBatch.from_pylist(rows, schema=ARROW)


def _row(offset: int, value: bytes | None) -> dict[str, object]:
    if not value or value[0] != RETENTION_VERSION:
        raise InputError(
            "RETENTION_VERSION_UNKNOWN",
            f"{RETENTION_TOPIC} holds version {value[0] if value else 'none'} at offset {offset}.",
            "Run the reports of the release that wrote it.",
        )
    try:
        record = usage_pb2.RetentionRecord.FromString(value[1:])
    except DecodeError:
        raise InputError(
            "RETENTION_RECORD_DAMAGED",
            f"{RETENTION_TOPIC} cannot be decoded at offset {offset}.",
            "Nothing may be concluded from it: ask the operator which node wrote it.",
        ) from None
    kind = record.WhichOneof("record")
    if kind == "trimmed":
        return {"offset": offset, "trimmed": _fields(record.trimmed, TRIMMED)}
    if kind == "inventory":
        return {"offset": offset, "inventory": _fields(record.inventory, INVENTORY)}
    raise InputError(
        "RETENTION_RECORD_UNKNOWN",
        f"{RETENTION_TOPIC} holds a record of an unknown kind at offset {offset}.",
        "Run the reports of the release that wrote it.",
    )


def _fields(message: Message, kind: pa.StructType) -> dict[str, object]:
    return {field.name: getattr(message, field.name) for field in kind}
