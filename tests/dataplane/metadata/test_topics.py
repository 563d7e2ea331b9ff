"""The life of a topic in the metadata: closing, gone, remembered; growth and its readers."""

import pytest

from dataplane.groups.assignment import Slice
from dataplane.metadata import state as rows
from dataplane.metadata import tables
from dataplane.metadata.commands import decode_result, encode_command
from dataplane.metadata.machine import Applied, Machine
from dataplane.wire import node_pb2 as wire
from headrace.wire import stream_pb2 as stream
from tests.support.builders.commands import (
    Log,
    confirm,
    confirm_delete,
    delete_topic,
    join,
    put_topic,
)


def _flags(row: bytes) -> int:
    return int.from_bytes(row[48:52], "little")


def _gone(delta: bytes) -> dict[int, int]:
    """Topic number -> flags of each TOPIC_GONE row."""
    found = {}
    while delta:
        size = int.from_bytes(delta[2:4], "little")
        if delta[0] == tables.ROW_TOPIC_GONE:
            found[int.from_bytes(delta[8:16], "little")] = _flags(delta)
        delta = delta[size + -size % 8 :]
    return found


def _commit(log: Log, command: wire.Command) -> tuple[wire.Result, Applied]:
    applied = log.apply(encode_command(command))
    return decode_result(applied.result), applied


def _deleted(log: Log, topic_id: str = "tp_1", *, fence: tuple[int, int, int] = (1, 2, 1)) -> None:
    """Delete to the end."""
    number = log.machine.state.topics[topic_id].number
    intent = log.do(delete_topic(topic_id, fence=fence))
    assert log.do(confirm_delete(number, intent.op)).applied.deleted


# ---- closing ----


def test_a_deleted_topic_closes_and_its_shards_are_told() -> None:
    log = Log()
    log.do(put_topic())
    result, applied = _commit(log, delete_topic())
    assert (result.applied.changed, result.applied.deleted) == (True, False)
    assert (result.applied.number, result.applied.created_revision) == (16, 2)
    assert (applied.delta[0], _flags(applied.delta)) == (
        tables.ROW_TOPIC,
        tables.TOPIC_FLAG_CLOSING,
    )
    assert log.machine.state.topics["tp_1"].closing_op == result.op


def test_a_deletion_is_fenced_as_a_wish_is() -> None:
    log = Log()
    log.do(put_topic(fence=(1, 5, 9)))
    before = log.machine.state.topics["tp_1"]
    assert log.do(delete_topic(fence=(1, 5, 8))).refused.code == "COMMAND_FENCED"
    assert log.machine.state.topics["tp_1"] == before
    log.do(delete_topic(fence=(1, 6, 1)))
    assert log.do(delete_topic(fence=(1, 5, 9))).refused.code == "COMMAND_FENCED"


def test_a_repeated_deletion_is_the_same_intent() -> None:
    log = Log()
    log.do(put_topic())
    first = log.do(delete_topic())
    for fence in ((1, 2, 1), (1, 2, 2), (1, 3, 1)):
        result, applied = _commit(log, delete_topic(fence=fence))
        assert (result.applied.changed, applied.delta) == (False, b"")
        assert log.machine.state.topics["tp_1"].closing_op == first.op
    assert log.do(delete_topic(fence=(1, 2, 9))).refused.code == "COMMAND_FENCED"


def test_force_is_a_newer_intent_that_voids_the_confirmation_of_the_one_before() -> None:
    log = Log()
    log.do(put_topic())
    first = log.do(delete_topic())
    second = log.do(delete_topic(fence=(1, 3, 1), force_reason="its disk is gone"))
    assert second.applied.changed
    assert log.do(confirm_delete(16, first.op)).refused.code == "INTENT_STALE"
    assert log.do(confirm_delete(16, second.op, given_up=[1])).applied.deleted
    assert log.machine.state.deleted_topics["tp_1"].given_up == (1,)


def test_a_closing_topic_takes_no_wish_and_keeps_its_name() -> None:
    log = Log()
    log.do(put_topic())
    log.do(delete_topic())
    assert log.do(put_topic(fence=(1, 1, 9))).refused.code == "COMMAND_FENCED"
    for fence in ((1, 2, 1), (1, 3, 1)):
        assert log.do(put_topic(fence=fence)).refused.code == "TOPIC_CLOSING"
    refused = log.do(put_topic("tp_2")).refused
    assert (refused.code, refused.kind) == ("TOPIC_NAME_TAKEN", stream.RETRY_SAME_NODE)


def test_topics_of_the_system_are_neither_deleted_nor_changed() -> None:
    log = Log()
    before = dict(log.machine.state.topics)
    for command in (delete_topic("tp_system_usage"), put_topic("tp_system_usage")):
        assert log.do(command).refused.code == "PERMISSION_DENIED"
    assert log.machine.state.topics == before


def test_a_long_reason_is_refused() -> None:
    log = Log()
    log.do(put_topic())
    assert log.do(delete_topic(force_reason="x" * 1025)).refused.code == "INVALID_ARGUMENT"


# ---- gone ----


def test_a_confirmed_topic_is_gone_and_its_name_is_free() -> None:
    log = Log()
    log.do(put_topic())
    intent = log.do(delete_topic())
    result, applied = _commit(log, confirm_delete(16, intent.op))
    assert (result.applied.deleted, result.applied.changed) == (True, True)
    assert _gone(applied.delta) == {16: 0}
    assert "tp_1" not in log.machine.state.topics
    assert log.machine.state.topic_numbered(16) is None
    assert log.do(put_topic("tp_2")).applied.number == 17


def test_a_repeated_confirmation_says_the_same() -> None:
    log = Log()
    log.do(put_topic())
    intent = log.do(delete_topic())
    log.do(confirm_delete(16, intent.op))
    result, applied = _commit(log, confirm_delete(16, intent.op))
    assert (result.applied.deleted, result.applied.changed) == (True, False)
    assert applied.delta == b""


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (confirm_delete(17, 3), "INTENT_STALE"),
        (confirm_delete(16, 2), "INTENT_STALE"),
        (confirm_delete(99, 3), "TOPIC_NOT_FOUND"),
        (confirm_delete(16, 4, given_up=[0]), "INVALID_ARGUMENT"),
        (confirm_delete(18, 6, given_up=[2]), "INVALID_ARGUMENT"),
    ],
)
def test_a_confirmation_that_does_not_fit_is_refused(command: wire.Command, code: str) -> None:
    log = Log()
    log.do(put_topic())
    log.do(put_topic("tp_2", topic="views"))
    log.do(delete_topic())
    log.do(put_topic("tp_3", topic="orders"))
    log.do(delete_topic("tp_3", force_reason="lost"))
    before = log.machine.snapshot()
    result = log.do(command)
    assert result.refused.code == code
    log.machine.state.op = result.op - 1
    assert log.machine.snapshot() == before


def test_a_deleted_topic_never_comes_back() -> None:
    log = Log()
    log.do(put_topic())
    _deleted(log)
    assert log.do(put_topic()).refused.code == "COMMAND_FENCED"
    refused = log.do(put_topic(fence=(9, 9, 9))).refused
    assert (refused.code, refused.kind) == ("TOPIC_DELETED", stream.TERMINAL)
    again = log.do(delete_topic(fence=(1, 3, 1)))
    assert (again.applied.deleted, again.applied.changed) == (True, False)
    assert log.do(delete_topic(fence=(1, 2, 9))).refused.code == "COMMAND_FENCED"


def test_a_topic_deleted_before_it_was_put_is_remembered() -> None:
    log = Log()
    first = log.do(delete_topic("tp_7"))
    assert (first.applied.deleted, first.applied.changed, first.applied.number) == (True, True, 0)
    assert log.do(put_topic("tp_7")).refused.code == "COMMAND_FENCED"
    assert log.do(put_topic("tp_7", fence=(1, 2, 1))).refused.code == "TOPIC_DELETED"


def test_the_name_of_a_deleted_topic_tells_stale_handles_that_it_lives_again() -> None:
    log = Log()
    log.do(put_topic())
    _deleted(log)
    _, applied = _commit(log, put_topic("tp_2"))
    assert _gone(applied.delta) == {16: tables.TOPIC_FLAG_RECREATED}
    intent = log.do(delete_topic("tp_2"))
    _, applied = _commit(log, confirm_delete(17, intent.op))
    assert _gone(applied.delta) == {16: 0, 17: 0}
    _, applied = _commit(log, put_topic("tp_3"))
    assert _gone(applied.delta) == dict.fromkeys((16, 17), tables.TOPIC_FLAG_RECREATED)


def test_a_topic_that_takes_the_name_by_renaming_counts_too() -> None:
    log = Log()
    log.do(put_topic())
    log.do(put_topic("tp_2", topic="views"))
    _deleted(log)
    _, applied = _commit(log, put_topic("tp_2", fence=(1, 2, 1)))
    assert _gone(applied.delta) == {16: tables.TOPIC_FLAG_RECREATED}
    _, applied = _commit(log, put_topic("tp_2", topic="views", fence=(1, 3, 1)))
    assert _gone(applied.delta) == {16: 0}


def test_full_tables_say_which_topics_are_gone() -> None:
    log = Log()
    log.do(put_topic())
    log.do(put_topic("tp_2", topic="views"))
    _deleted(log)
    _deleted(log, "tp_2")
    log.do(put_topic("tp_3"))
    assert _gone(Machine().restore(log.machine.snapshot())) == {
        16: tables.TOPIC_FLAG_RECREATED,
        17: 0,
    }


def test_the_earliest_deletions_are_forgotten_beyond_a_bound_of_bytes() -> None:
    log = Log()
    each = rows.DELETED_TOPIC_BYTES + len("tp_00000")
    count = rows.DELETED_TOPICS_BYTES_MAX // each
    for index in range(count + 2):
        log.do(delete_topic(f"tp_{index:05}"))
    state = log.machine.state
    assert len(state.deleted_topics) == count
    assert state.deleted_topics_bytes <= rows.DELETED_TOPICS_BYTES_MAX
    assert next(iter(state.deleted_topics)) == "tp_00002"
    other = Machine()
    other.restore(log.machine.snapshot())
    assert other.state == state


# ---- groups ----


def test_a_gone_topic_leaves_the_groups_that_read_it_and_only_those_change() -> None:
    log = Log()
    log.do(put_topic())
    log.do(put_topic("tp_2", topic="views"))
    log.do(join("a", 1, [16, 17], group="both"))
    log.do(join("b", 2, [17], group="views"))
    both, views = log.machine.state.groups[16], log.machine.state.groups[17]
    for partition in range(2):
        log.do(confirm(16, 17, partition, both.slots[Slice(17, partition)].intent_op))
    generations = (both.generation, views.generation)

    intent = log.do(delete_topic())
    assert (both.generation, views.generation) == generations
    _, applied = _commit(log, confirm_delete(16, intent.op))
    assert applied.groups == (16,)
    assert (both.generation, views.generation) == (generations[0] + 1, generations[1])
    assert set(both.slots) == {Slice(17, 0), Slice(17, 1)}
    assert both.members["a"].topics == (17,)
    assert both.state() == "STABLE"


def test_more_partitions_are_assigned_to_the_groups_that_read_the_topic() -> None:
    log = Log()
    log.do(put_topic())
    log.do(put_topic("tp_2", topic="views"))
    log.do(join("a", 1, [16], group="clicks"))
    log.do(join("b", 2, [17], group="views"))
    clicks = log.machine.state.groups[16]
    before = clicks.generation

    result, applied = _commit(log, put_topic(partitions=5, fence=(1, 2, 1)))
    assert (result.applied.created_revision, applied.groups) == (2, (16,))
    assert applied.delta[0] == tables.ROW_TOPIC
    assert clicks.generation == before + 1
    assert sorted(clicks.slots) == [Slice(16, index) for index in range(5)]
    assert {clicks.slots[Slice(16, index)].intent_op for index in (2, 3, 4)} == {result.op}
    assert {clicks.slots[Slice(16, index)].generation for index in (0, 1)} == {before}


def test_more_partitions_without_readers_change_no_group() -> None:
    log = Log()
    log.do(put_topic())
    _, applied = _commit(log, put_topic(partitions=3, fence=(1, 2, 1)))
    assert applied.groups == ()
