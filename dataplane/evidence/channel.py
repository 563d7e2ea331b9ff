"""The two channels of evidence: closed metering windows for `_usage`, trims for `_retention`.

Owns what differs between them: the frame that brings a window or a trim, the record that it
becomes, the system topic of that record, and the frame that acknowledges it. A record's value is a
version byte, then a message with deterministic bytes. Names of topics, organizations and keys are
resolved when the record is made; the numbers stay the identity. Refuses to compute: sums come from
the partition's log.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from dataplane.engine.frames import (
    Kind,
    MeterClose,
    PartitionId,
    Trimmed,
    unpack_meter_close,
    unpack_trimmed,
)
from dataplane.evidence.counters import USAGE_VALUE_VERSION
from dataplane.evidence.spool import Record
from dataplane.metadata.state import RETENTION_TOPIC_NUMBER, USAGE_TOPIC_NUMBER, State
from headrace.wire import usage_pb2 as usage

RETENTION_VALUE_VERSION: Final = 1


class Arrival(NamedTuple):
    """One window as the engine handed it over; `record` resolves its names."""

    id: PartitionId
    sequence: int
    record: Callable[[State], Record]


class Channel(NamedTuple):
    """One kind of evidence: the frame it arrives in, its system topic, its acknowledgement."""

    name: str
    topic: str
    topic_number: int
    arrives: Kind
    acknowledged: Kind
    unpack: Callable[[bytes], Arrival]


def retention_value(record: usage.RetentionRecord) -> bytes:
    """The value of a record of `_retention`: a version byte, then RetentionRecord,
    deterministic."""
    return bytes([RETENTION_VALUE_VERSION]) + record.SerializeToString(deterministic=True)


def _name_topic(message: usage.Close | usage.Trimmed, state: State) -> None:
    """Add the names of the topic that a message has the number of."""
    topic = state.topic_numbered(message.topic)
    if topic is not None:
        message.topic_id = topic.spec.topic_id
        message.topic_name = topic.spec.name()
        message.organization_id = topic.spec.organization_id
        message.project_id = topic.spec.project_id


def usage_record(state: State, close: MeterClose) -> Record:
    """The value of `_usage` for a closed window: a version byte, then UsageRecord, deterministic.

    Names are resolved now, as things are called at the close; the numbers stay the identity.
    """
    message = usage.Close(
        topic=close.id.topic,
        created_revision=close.id.created_revision,
        partition=close.id.partition,
        sequence=close.sequence,
        from_op=close.from_op,
        to_op=close.to_op,
        window_start_us=close.window_start_us,
        window_end_us=close.window_end_us,
        cluster_id=state.cluster_id,
    )
    _name_topic(message, state)
    for found in sorted(close.sums):
        message.sums.add(
            principal=found.principal,
            ingress_bytes=found.ingress_bytes,
            records=found.records,
            batches=found.batches,
            principal_id=state.principal_id(found.principal),
        )
    value = usage.UsageRecord(close=message).SerializeToString(deterministic=True)
    return Record(
        close.id, close.sequence, close.window_end_us, bytes([USAGE_VALUE_VERSION]) + value
    )


def trimmed_record(state: State, trimmed: Trimmed) -> Record:
    """The value of `_retention` for a trim, with names as things are called now."""
    message = usage.Trimmed(
        topic=trimmed.id.topic,
        created_revision=trimmed.id.created_revision,
        partition=trimmed.id.partition,
        trim_op=trimmed.trim_op,
        policy_version=trimmed.policy_version,
        cause=trimmed.cause.name.lower(),
        first_offset=trimmed.from_offset,
        last_offset=trimmed.to_offset - 1,
        bytes=trimmed.bytes,
        records=trimmed.records,
        min_time_us=trimmed.min_time_us,
        max_time_us=trimmed.max_time_us,
        sequence=trimmed.sequence,
        trimmed_at_us=trimmed.trimmed_at_us,
        segments=trimmed.segments,
        cluster_id=state.cluster_id,
    )
    _name_topic(message, state)
    value = retention_value(usage.RetentionRecord(trimmed=message))
    return Record(trimmed.id, trimmed.sequence, trimmed.trimmed_at_us, value)


def _unpack_close(body: bytes) -> Arrival:
    close = unpack_meter_close(body)
    return Arrival(close.id, close.sequence, lambda state: usage_record(state, close))


def _unpack_trimmed(body: bytes) -> Arrival:
    trimmed = unpack_trimmed(body)
    return Arrival(trimmed.id, trimmed.sequence, lambda state: trimmed_record(state, trimmed))


USAGE: Final = Channel(
    name="usage",
    topic="_usage",
    topic_number=USAGE_TOPIC_NUMBER,
    arrives=Kind.METER_CLOSE,
    acknowledged=Kind.METER_ACK,
    unpack=_unpack_close,
)

RETENTION: Final = Channel(
    name="retention",
    topic="_retention",
    topic_number=RETENTION_TOPIC_NUMBER,
    arrives=Kind.TRIMMED,
    acknowledged=Kind.TRIM_ACK,
    unpack=_unpack_trimmed,
)
