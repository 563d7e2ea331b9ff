"""The metadata machine: results, numbers, fences, digests."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.errors import Refused
from dataplane.metadata import tables
from dataplane.metadata.commands import decode_result, encode_command
from dataplane.metadata.machine import Machine
from dataplane.metadata.rules import check_submitted
from dataplane.metadata.snapshot import SnapshotUnreadable
from dataplane.wire import node_pb2 as wire
from tests.support.builders.commands import (
    Log,
    confirm,
    confirm_delete,
    delete_topic,
    join,
    leave,
    put_key,
    put_topic,
    revoke_key,
)

DATA = Path(__file__).parents[2] / "data"
GOLDEN = DATA / "metadata_snapshot_v1.bin"
GOLDEN_DELETIONS = DATA / "metadata_snapshot_v1_deletions.bin"


def test_bootstrap_makes_the_system_topics_with_reserved_numbers() -> None:
    state = Log().machine.state
    assert [(t.number, t.spec.name(), t.is_system()) for t in state.topics_by_number()] == [
        (1, "_usage", True),
        (2, "_retention", True),
    ]


def test_nothing_is_done_before_bootstrap() -> None:
    applied = Machine().apply(1, 0, encode_command(put_topic()))
    assert decode_result(applied.result).refused.code == "NOT_BOOTSTRAPPED"


def test_a_topic_gets_a_number_and_the_op_that_made_it() -> None:
    log = Log()
    result = log.do(put_topic())
    assert (result.op, result.applied.number, result.applied.created_revision) == (2, 16, 2)
    assert result.applied.changed
    assert log.do(put_topic("tp_2", topic="views")).applied.number == 17


def test_an_equal_fence_is_a_replay_with_the_same_handle() -> None:
    log = Log()
    first = log.do(put_topic())
    again = log.apply(encode_command(put_topic()))
    result = decode_result(again.result)
    assert (result.applied.number, result.applied.created_revision) == (
        first.applied.number,
        first.applied.created_revision,
    )
    assert not result.applied.changed
    assert again.delta == b""


def test_a_lower_fence_is_refused_and_changes_nothing() -> None:
    log = Log()
    log.do(put_topic(fence=(1, 5, 9)))
    before = log.machine.state.topics["tp_1"]
    for fence in ((0, 9, 9), (1, 4, 99), (1, 5, 8)):
        result = log.do(put_topic(fence=fence, retention_ms=1))
        assert result.refused.code == "COMMAND_FENCED"
        assert log.machine.state.topics["tp_1"] == before


def test_a_changed_wish_keeps_the_number_and_sends_the_shards_a_row() -> None:
    log = Log()
    log.do(put_topic())
    applied = log.apply(encode_command(put_topic(fence=(1, 2, 1), retention_ms=5)))
    assert decode_result(applied.result).applied.changed
    assert decode_result(applied.result).applied.created_revision == 2
    assert len(applied.delta) == tables.TOPIC_ROW_SIZE + 16  # with its name, padded


def test_a_name_belongs_to_one_topic_of_a_project() -> None:
    log = Log()
    log.do(put_topic())
    assert log.do(put_topic("tp_2")).refused.code == "TOPIC_NAME_TAKEN"
    assert log.do(put_topic("tp_3", project_id="prj_2")).applied.number == 17


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (put_topic(partitions=1, fence=(1, 2, 1)), "PARTITIONS_DECREASE"),
        (put_topic(replication_factor=3, fence=(1, 2, 1)), "REPLICATION_FIXED"),
        (put_topic(organization_id="org_2", fence=(1, 2, 1)), "OBJECT_MOVED"),
        (put_topic("tp_9", topic="_mine"), "INVALID_ARGUMENT"),
        (put_topic("tp_9", partitions=0), "INVALID_ARGUMENT"),
        (put_topic("tp_9", topic="other", replication_factor=3), "NODES_TOO_FEW"),
        (put_topic("tp_9", topic="other", organization_id="org_2"), "OBJECT_MOVED"),
        (put_key(role="god"), "INVALID_ARGUMENT"),
        (put_key(public_id=""), "INVALID_ARGUMENT"),
        (wire.Command(), "COMMAND_UNKNOWN"),
        (join("a", 1, [99]), "TOPIC_NOT_FOUND"),
        (join("a", 1, [1]), "TOPIC_NOT_FOUND"),
        (join("a", 1, []), "INVALID_ARGUMENT"),
        (join("a", 0, [16]), "INVALID_ARGUMENT"),
        (leave(99, "a", 1), "GROUP_NOT_FOUND"),
    ],
)
def test_a_refused_command_teaches_and_changes_nothing_but_the_op(
    command: wire.Command, code: str
) -> None:
    log = Log()
    log.do(put_topic())
    before = log.machine.snapshot()
    result = log.do(command)
    assert result.refused.code == code
    assert result.refused.message
    log.machine.state.op = 2
    assert log.machine.snapshot() == before


def test_a_limit_of_0_in_a_log_is_applied_as_it_was_and_no_longer_taken_at_the_door() -> None:
    old = put_topic(retention_ms=0)
    log = Log()
    assert log.do(old).applied.changed
    assert log.machine.state.topics["tp_1"].spec.retention_ms == 0
    with pytest.raises(Refused, match="retention_ms is 0; it must be 1 or more, or -1"):
        check_submitted(old.control.request)
    check_submitted(put_topic().control.request)


def test_bytes_of_a_newer_release_are_refused_not_fatal() -> None:
    log = Log()
    for data in (b"", b"\x02abc", b"\x01\xff\xff", b"\x01" + bytes([0xFA, 0x3F, 0x01, 0x00])):
        assert decode_result(log.apply(data).result).refused.code == "COMMAND_UNKNOWN"


def test_a_key_becomes_a_grant_and_its_revocation_takes_it_away() -> None:
    log = Log()
    applied = log.apply(encode_command(put_key()))
    assert decode_result(applied.result).applied.number == 16
    assert (applied.delta[0], len(applied.delta)) == (tables.ROW_GRANT, 80)
    gone = log.apply(encode_command(revoke_key()))
    assert (gone.delta[0], len(gone.delta)) == (tables.ROW_GRANT_GONE, 80)
    assert b"abcdefghij" in gone.delta


def test_a_revoked_key_never_comes_back() -> None:
    log = Log()
    log.do(revoke_key("key_2"))
    log.do(put_key())
    log.do(revoke_key())
    for key_id in ("key_1", "key_2"):
        assert log.do(put_key(key_id, fence=(1, 9, 1))).refused.code == "KEY_REVOKED"


def test_a_delayed_key_is_fenced_by_its_revocation() -> None:
    log = Log()
    log.do(revoke_key())
    assert log.do(put_key()).refused.code == "COMMAND_FENCED"


def test_a_public_id_belongs_to_one_key() -> None:
    log = Log()
    log.do(put_key())
    assert log.do(put_key("key_2")).refused.code == "KEY_PUBLIC_ID_TAKEN"


def test_a_role_decides_the_verbs() -> None:
    assert tables.VERBS_OF_ROLE["editor"] == tables.VERB_PRODUCE | tables.VERB_CONSUME
    assert tables.VERBS_OF_ROLE["viewer"] == tables.VERB_CONSUME
    assert tables.VERBS_OF_ROLE["billing-viewer"] == 0


def test_ops_are_applied_once_each() -> None:
    log = Log()
    with pytest.raises(ValueError, match="once each"):
        log.machine.apply(1, 0, encode_command(put_topic()))


# ---- snapshots ----


def _busy_log() -> Log:
    log = Log()
    log.do(put_topic())
    log.do(put_topic("tp_2", topic="views", project_id="prj_2"))
    log.do(put_key())
    log.do(put_key("key_2", public_id="zzzzzzzzzz", role="viewer", project_id=""))
    log.do(revoke_key("key_2"))
    log.do(join("a", 1, [16]))
    log.do(confirm(16, 16, 0, 7))
    log.do(join("b", 2, [16]))
    return log


def test_a_snapshot_restores_the_state_and_every_lookup() -> None:
    log = _busy_log()
    other = Machine()
    rows = other.restore(log.machine.snapshot())
    assert other.state == log.machine.state
    assert other.digest() == log.machine.digest()
    assert rows == tables.full_tables(log.machine.state)


def test_the_snapshot_layout_is_frozen() -> None:
    assert _busy_log().machine.snapshot() == GOLDEN.read_bytes()


def _log_with_deletions() -> Log:
    log = _busy_log()
    log.do(put_topic("tp_3", topic="orders", partitions=3))
    log.do(delete_topic("tp_3", force_reason="disk lost"))
    log.do(confirm_delete(18, log.machine.state.op, given_up=[1]))
    log.do(delete_topic("tp_9"))
    log.do(delete_topic("tp_2", force_reason="all lost"))
    return log


def test_the_snapshot_layout_of_deletions_is_frozen_and_read() -> None:
    log = _log_with_deletions()
    assert log.machine.snapshot() == GOLDEN_DELETIONS.read_bytes()
    other = Machine()
    rows = other.restore(GOLDEN_DELETIONS.read_bytes())
    assert other.state == log.machine.state
    assert rows == tables.full_tables(log.machine.state)


def test_a_snapshot_of_an_unknown_version_is_refused() -> None:
    with pytest.raises(SnapshotUnreadable, match="version 9"):
        Machine().restore(b"\x09")


def test_an_empty_snapshot_is_the_empty_state() -> None:
    machine = Machine()
    assert machine.restore(b"") == b""
    assert machine.state.op == 0


@pytest.mark.parametrize("seed", ["0", "1", "4711"])
def test_the_digest_does_not_depend_on_the_hash_seed(seed: str) -> None:
    script = (
        "import sys; sys.path.insert(0, '.');"
        "from tests.dataplane.metadata.test_machine import _busy_log;"
        "print(_busy_log().machine.digest().hex())"
    )
    found = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONHASHSEED": seed},
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.strip() == _busy_log().machine.digest().hex()


commands = st.one_of(
    st.builds(
        put_topic,
        st.sampled_from(["tp_1", "tp_2", "tp_3"]),
        topic=st.sampled_from(["clicks", "views"]),
        partitions=st.integers(1, 3),
        fence=st.tuples(st.integers(0, 1), st.integers(0, 2), st.integers(0, 2)),
    ),
    st.builds(
        put_key,
        st.sampled_from(["key_1", "key_2"]),
        public_id=st.sampled_from(["aaaaaaaaaa", "bbbbbbbbbb"]),
        fence=st.tuples(st.integers(0, 1), st.integers(0, 2), st.integers(0, 2)),
    ),
    st.builds(revoke_key, st.sampled_from(["key_1", "key_2"])),
    st.builds(
        join,
        st.sampled_from("abc"),
        st.integers(1, 9),
        st.lists(st.integers(16, 18), max_size=3),
    ),
    st.builds(
        delete_topic,
        st.sampled_from(["tp_1", "tp_2"]),
        fence=st.tuples(st.integers(0, 1), st.integers(0, 2), st.integers(0, 2)),
        force_reason=st.sampled_from(["", "lost"]),
    ),
    st.builds(confirm_delete, st.integers(16, 18), st.integers(1, 40)),
    st.builds(leave, st.integers(15, 17), st.sampled_from("abc"), st.integers(1, 9)),
    st.builds(confirm, st.just(16), st.integers(16, 18), st.integers(0, 2), st.integers(1, 40)),
)


@given(st.lists(commands, max_size=40), st.integers(0, 40))
@settings(max_examples=60, deadline=None)
def test_a_replica_restored_anywhere_ends_in_the_same_state(
    story: list[wire.Command], cut: int
) -> None:
    log = Log()
    replica = Machine()
    replica.restore(log.machine.snapshot())
    shards = tables.full_tables(log.machine.state)
    for step, command in enumerate(story):
        data = encode_command(command)
        applied = log.apply(data)
        assert replica.apply(step + 2, (step + 2) * 1000, data) == applied
        shards += applied.delta
        if step == cut:
            replica.restore(log.machine.snapshot())
    assert replica.digest() == log.machine.digest()
    assert _compiled(shards) == _compiled(tables.full_tables(log.machine.state))


def _compiled(rows: bytes) -> dict[bytes, bytes]:
    """What a shard holds after a delta: the last row of each topic, project and public id."""
    found: dict[bytes, bytes] = {}
    while rows:
        kind, size = rows[0], int.from_bytes(rows[2:4], "little")
        row, rows = rows[:size], rows[size + -size % 8 :]
        is_grant = kind in {tables.ROW_GRANT, tables.ROW_GRANT_GONE}
        is_topic = kind in {tables.ROW_TOPIC, tables.ROW_TOPIC_GONE}
        key = row[8:24] if is_grant else (b"topic" if is_topic else b"project") + row[8:16]
        found.pop(key, None)
        found.update({} if kind == tables.ROW_GRANT_GONE else {key: row})
    return found
