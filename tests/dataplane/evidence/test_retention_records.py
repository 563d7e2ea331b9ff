"""What `_retention` says of trims and of what is left, byte for byte, and how it gets there."""

from pathlib import Path

import pytest

from dataplane.engine.frames import PartitionId, PartitionState, TrimCause, Trimmed
from dataplane.evidence.channel import trimmed_record
from dataplane.evidence.inventory import inventory_value
from headrace.wire import usage_pb2 as usage
from tests.support.builders.commands import Log, put_topic

DATA = Path(__file__).parents[2] / "data"
P = PartitionId(16, 2, 1)
TRIMMED = Trimmed(
    id=P,
    sequence=3,
    trim_op=99,
    policy_version=4,
    from_offset=10,
    to_offset=42,
    bytes=1000,
    records=32,
    min_time_us=1_700_000_000_000_000,
    max_time_us=1_700_000_010_000_000,
    trimmed_at_us=1_700_600_000_000_000,
    cause=TrimCause.TIME,
    segments=2,
)
STATE = PartitionState(
    log_start=42,
    high_watermark=50,
    log_end=50,
    bytes=4096,
    cumulative_bytes=9000,
    state=1,
    is_held=True,
    held_from=42,
    hold_intent_op=7,
    held_bytes=2048,
    oldest_us=1_700_000_020_000_000,
    newest_us=1_700_000_030_000_000,
    expires_us=1_700_700_000_000_000,
)


@pytest.fixture
def log() -> Log:
    found = Log()
    found.do(put_topic(retention_ms=60_000))
    return found


def test_a_trim_is_recorded_with_the_names_of_its_time_and_frozen(log: Log) -> None:
    record = trimmed_record(log.machine.state, TRIMMED)
    assert (record.partition, record.sequence, record.time_us) == (P, 3, TRIMMED.trimmed_at_us)
    found = usage.RetentionRecord.FromString(record.value[1:]).trimmed
    assert (found.first_offset, found.last_offset, found.cause) == (10, 41, "time")
    assert (found.topic_id, found.topic_name) == ("tp_1", "default/clicks")
    assert found.cluster_id == "cl_1"
    assert record.value == (DATA / "retention_trimmed_named_v1.bin").read_bytes()


def test_a_trim_of_an_unknown_topic_keeps_its_numbers(log: Log) -> None:
    stranger = TRIMMED._replace(id=PartitionId(99, 2, 1))
    value = trimmed_record(log.machine.state, stranger).value
    found = usage.RetentionRecord.FromString(value[1:]).trimmed
    assert (found.topic, found.topic_id, found.bytes) == (99, "", 1000)


def test_an_inventory_says_how_a_partition_stands_and_is_frozen(log: Log) -> None:
    topic = log.machine.state.topics["tp_1"]
    value = inventory_value("cl_1", topic, P, STATE, 1_700_650_000_000_000)
    found = usage.RetentionRecord.FromString(value[1:]).inventory
    assert (found.log_start, found.log_end, found.records, found.bytes) == (42, 50, 8, 4096)
    assert (found.held, found.held_from, found.held_bytes) == (True, 42, 2048)
    assert (found.retention_ms, found.retention_bytes, found.policy_version) == (60_000, -1, 1)
    assert value == (DATA / "retention_inventory_v1.bin").read_bytes()
