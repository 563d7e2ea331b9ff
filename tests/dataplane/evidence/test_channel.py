"""What the records of `_usage` and `_retention` say, byte for byte."""

from pathlib import Path

import pytest

from dataplane.engine.frames import MeterClose, MeterSum, PartitionId
from dataplane.evidence.channel import usage_record
from headrace.wire import usage_pb2 as usage
from tests.support.builders.commands import Log, put_key, put_topic

DATA = Path(__file__).parents[2] / "data"

CLOSE = MeterClose(
    id=PartitionId(16, 2, 1),
    sequence=7,
    from_op=100,
    to_op=123,
    window_start_us=1_700_000_000_000_000,
    window_end_us=1_700_000_060_000_000,
    sums=(MeterSum(16, 4096, 12, 3), MeterSum(2, 100, 1, 1)),
)


def _log() -> Log:
    log = Log()
    log.do(put_topic())
    log.do(put_key())
    return log


def test_a_close_is_recorded_with_the_names_of_its_time() -> None:
    record = usage_record(_log().machine.state, CLOSE)
    assert (record.partition, record.sequence, record.time_us) == (
        CLOSE.id,
        7,
        CLOSE.window_end_us,
    )
    close = usage.UsageRecord.FromString(record.value[1:]).close
    assert (close.topic_id, close.topic_name) == ("tp_1", "default/clicks")
    assert (close.organization_id, close.project_id) == ("org_1", "prj_1")
    assert close.cluster_id == "cl_1"
    assert [(found.principal, found.principal_id) for found in close.sums] == [
        (2, "node"),
        (16, "key_1"),
    ]


def test_a_close_of_an_unknown_topic_keeps_its_numbers() -> None:
    stranger = CLOSE._replace(id=PartitionId(99, 2, 1))
    close = usage.UsageRecord.FromString(
        usage_record(_log().machine.state, stranger).value[1:]
    ).close
    assert (close.topic, close.topic_id, len(close.sums)) == (99, "", 2)


def test_the_layout_of_a_close_is_frozen() -> None:
    golden = (DATA / "usage_close_v1.bin").read_bytes()
    assert usage_record(_log().machine.state, CLOSE).value == golden


COUNTER = usage.UsageRecord(
    counter=usage.Counter(
        node_id="nd_1",
        incarnation=1,
        shard=2,
        sequence=3,
        topic=16,
        principal=17,
        meter="egress_bytes",
        delta=5,
        cumulative=50,
        window_start_us=1_700_000_000_000_000,
        window_end_us=1_700_000_010_000_000,
    )
)
TRIMMED = usage.RetentionRecord(
    trimmed=usage.Trimmed(
        topic=16,
        created_revision=2,
        partition=1,
        trim_op=99,
        policy_version=4,
        cause="age",
        first_offset=0,
        last_offset=41,
        bytes=1000,
        records=42,
        min_time_us=1_700_000_000_000_000,
        max_time_us=1_700_000_010_000_000,
    )
)


@pytest.mark.parametrize(
    ("message", "name"), [(COUNTER, "usage_counter_v1.bin"), (TRIMMED, "retention_trimmed_v1.bin")]
)
def test_the_other_layouts_are_frozen(
    message: usage.UsageRecord | usage.RetentionRecord, name: str
) -> None:
    value = b"\x01" + message.SerializeToString(deterministic=True)
    assert value == (DATA / name).read_bytes()
