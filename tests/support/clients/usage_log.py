"""The records that a node has written to `_usage`, decoded."""

from collections import Counter, defaultdict

from headrace.wire import usage_pb2
from tests.support.processes.node_process import NodeProcess

HOUR_US = 3_600_000_000
CUMULATIVE_END = 1 << 63


def usage_records(node: NodeProcess) -> list[usage_pb2.UsageRecord]:
    """Every record, in the order of the log."""
    admin = node.admin()
    values = admin.values(admin.topic("_usage"), 0)
    assert all(value is not None and value[0] == 1 for value in values)
    return [usage_pb2.UsageRecord.FromString(value[1:]) for value in values if value]


def closes(node: NodeProcess) -> list[usage_pb2.Close]:
    """The closed windows."""
    return [one.close for one in usage_records(node) if one.HasField("close")]


def counters(node: NodeProcess) -> list[usage_pb2.Counter]:
    """The counters of the shards; their rules are checked as well."""
    found = [one.counter for one in usage_records(node) if one.HasField("counter")]
    check_counters(found)
    return found


def check_counters(found: list[usage_pb2.Counter], *, hours_merged: bool = False) -> None:
    """Contiguous in each shard's life, nothing after its final one, cumulative; within an hour,
    unless too many had to wait."""
    lives: dict[tuple[int, int], list[usage_pb2.Counter]] = defaultdict(list)
    sums: Counter[tuple[int, int, int, int, int, str]] = Counter()
    ends: Counter[tuple[int, int, int, int, int, str]] = Counter()
    for one in found:
        lives[one.incarnation, one.shard].append(one)
        row = (
            one.incarnation,
            one.shard,
            one.topic,
            one.created_revision,
            one.principal,
            one.meter,
        )
        sums[row] += one.delta
        assert one.cumulative == sums[row] % CUMULATIVE_END, one
        assert one.window_start_us < one.window_end_us, one
        same = one.window_start_us // HOUR_US == (one.window_end_us - 1) // HOUR_US
        assert same or hours_merged, one
        assert ends[row] <= one.window_end_us, one
        ends[row] = one.window_end_us
    for life in lives.values():
        assert [one.sequence for one in life] == list(range(1, len(life) + 1))
        assert not any(one.final for one in life[:-1])


def totals(found: list[usage_pb2.Counter], topic_id: str) -> dict[tuple[str, str], int]:
    """The sums of one topic by (meter, principal_id)."""
    sums: Counter[tuple[str, str]] = Counter()
    for one in found:
        if one.topic_id == topic_id:
            sums[one.meter, one.principal_id] += one.delta
    return dict(sums)
