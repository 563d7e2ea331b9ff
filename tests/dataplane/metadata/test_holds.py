"""Holds in the metadata, against a small model, and their way into the partitions' logs."""

from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.metadata import holds
from dataplane.metadata.commands import decode_result, encode_command
from dataplane.metadata.machine import Machine
from dataplane.wire import node_pb2 as wire
from tests.support.builders.commands import (
    Log,
    confirm_delete,
    confirm_hold,
    delete_topic,
    put_hold,
    put_topic,
    release_hold,
)


def made() -> Log:
    log = Log()
    log.do(put_topic())
    return log


def desired(log: Log) -> dict[int, holds.DesiredHold]:
    state = log.machine.state
    return holds.desired_holds(state, state.topics["tp_1"])


def is_confirmed(log: Log) -> bool:
    return log.machine.state.holds["hold_1"].is_confirmed


def test_a_hold_is_wished_of_every_partition_and_confirmed_by_its_intent() -> None:
    log = made()
    result = log.do(put_hold(from_offset=5))
    assert (result.applied.changed, result.applied.number) == (True, 16)
    assert desired(log) == {index: holds.DesiredHold(result.op, 5) for index in range(2)}
    assert not is_confirmed(log)
    assert log.do(confirm_hold(16, result.op - 1)).refused.code == "INTENT_STALE"
    assert log.do(confirm_hold(16, result.op)).applied.changed
    assert is_confirmed(log)
    assert not log.do(confirm_hold(16, result.op)).applied.changed


def test_a_partition_is_told_what_all_holds_on_it_come_to() -> None:
    log = made()
    first = log.do(put_hold("hold_1", from_offset=9))
    second = log.do(put_hold("hold_2", partitions=(1,), from_offset=3))
    assert desired(log) == {0: holds.DesiredHold(first.op, 9), 1: holds.DesiredHold(second.op, 3)}
    third = log.do(release_hold("hold_2"))
    assert desired(log) == {0: holds.DesiredHold(first.op, 9), 1: holds.DesiredHold(third.op, 9)}
    last = log.do(release_hold("hold_1"))
    assert desired(log) == {index: holds.DesiredHold(last.op, None) for index in range(2)}


def test_a_released_hold_is_never_put_again_and_a_delayed_put_finds_the_release() -> None:
    log = made()
    assert log.do(release_hold("hold_9")).applied.changed
    assert log.do(put_hold("hold_9", fence=(1, 1, 1))).refused.code == "COMMAND_FENCED"
    assert log.do(put_hold("hold_9", fence=(1, 3, 1))).refused.code == "HOLD_RELEASED"
    assert not log.do(release_hold("hold_9")).applied.changed


def test_a_hold_beats_every_deletion() -> None:
    log = made()
    log.do(put_hold())
    for reason in ("", "its disk is gone"):
        refused = log.do(delete_topic(force_reason=reason)).refused
        assert refused.code == "TOPIC_HELD"
    log.do(release_hold())
    intent = log.do(delete_topic())
    assert intent.applied.changed
    assert log.do(put_hold("hold_2")).refused.code == "TOPIC_CLOSING"
    assert log.do(confirm_delete(16, intent.op)).applied.deleted
    assert log.machine.state.holds == {}
    assert log.do(put_hold("hold_2")).refused.code == "TOPIC_NOT_FOUND"


def test_what_cannot_be_held_is_refused_by_name() -> None:
    log = made()
    log.do(put_topic("tp_2", topic="views"))
    log.do(put_hold())
    codes = [
        log.do(command).refused.code
        for command in (
            put_hold("hold_2", topic_id="tp_9"),
            put_hold("hold_2", partitions=(2,)),
            put_hold(""),
            put_hold("hold_1", topic_id="tp_2", fence=(1, 2, 1)),
            confirm_hold(99, 5),
        )
    ]
    assert codes == [
        "TOPIC_NOT_FOUND",
        "INVALID_ARGUMENT",
        "INVALID_ARGUMENT",
        "OBJECT_MOVED",
        "TOPIC_NOT_FOUND",
    ]


def test_a_topic_has_so_many_holds_and_no_more() -> None:
    log = made()
    for index in range(holds.HOLDS_OF_TOPIC_MAX):
        assert log.do(put_hold(f"hold_{index}")).applied.changed
    assert log.do(put_hold("hold_more")).refused.code == "RESOURCE_EXHAUSTED"


def test_a_topic_that_grows_tells_its_holds_to_the_new_partitions() -> None:
    log = made()
    intent = log.do(put_hold())
    log.do(confirm_hold(16, intent.op))
    applied = log.apply(encode_command(put_topic(partitions=3, fence=(1, 2, 1))))
    assert applied.holding == 16
    assert not is_confirmed(log)
    grown = decode_result(applied.result).op
    assert desired(log) == {index: holds.DesiredHold(grown, 0) for index in range(3)}


def test_a_confirmation_of_before_a_topic_grew_says_nothing_of_the_new_partitions() -> None:
    log = made()
    intent = log.do(put_hold())
    grown = log.do(put_topic(partitions=3, fence=(1, 2, 1)))
    assert log.do(confirm_hold(16, intent.op)).refused.code == "INTENT_STALE"
    assert not is_confirmed(log)
    assert log.do(confirm_hold(16, grown.op)).applied.changed
    assert is_confirmed(log)


commands = st.one_of(
    st.builds(
        put_hold,
        st.sampled_from(["hold_1", "hold_2"]),
        partitions=st.sampled_from([(), (0,), (1, 0)]),
        from_offset=st.integers(0, 3),
        fence=st.tuples(st.just(1), st.integers(1, 3), st.just(1)),
    ),
    st.builds(
        release_hold,
        st.sampled_from(["hold_1", "hold_2"]),
        fence=st.tuples(st.just(1), st.integers(1, 3), st.just(1)),
    ),
    st.builds(confirm_hold, st.just(16), st.integers(1, 20)),
    st.builds(put_topic, partitions=st.integers(2, 4), fence=st.just((1, 9, 9))),
    st.builds(delete_topic, fence=st.just((1, 10, 1))),
)


@settings(max_examples=80, deadline=None)
@given(st.lists(commands, max_size=25))
def test_intents_only_rise_and_a_restored_machine_is_the_same(story: list[wire.Command]) -> None:
    log = made()
    before: dict[int, int] = {}
    for command in story:
        applied = log.apply(encode_command(command))
        result = decode_result(applied.result)
        now = {index: hold.intent_op for index, hold in desired(log).items()}
        assert all(now[index] >= intent for index, intent in before.items())
        if applied.holding and command.HasField("control"):
            assert result.WhichOneof("result") == "applied"
        before = now
        other = Machine()
        other.restore(log.machine.snapshot())
        assert other.digest() == log.machine.digest()
        assert other.state.holds == log.machine.state.holds
