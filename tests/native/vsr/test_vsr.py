"""vsr/: one member's replica as a pure step, against what the paper and V1, V3 ask of it."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from native._engine_sim import ffi, lib
from tests.support.builders.storage import name

if TYPE_CHECKING:
    from native._engine_sim import CData

DATA = Path(__file__).resolve().parents[2] / "data"
RECOVERING, NORMAL, DAMAGED = range(3)
REQUEST, PERSISTED, EXECUTED, VIEW, CHECKPOINT, FOUND, DAMAGE, ABSTAINED, RECOVERED = range(1, 10)


def founding(*, node: int = 7, release: int = 3) -> CData:
    """What a replica of partition 2 of topic 16 knows before its log."""
    made = ffi.new("struct vsr_founding *")
    made.member = {"node": node, "incarnation": 9, "tenure": 1}
    made.release = release
    lib.vsr_identity(b"cl_a".ljust(48, b"\0"), 16, 3, 2, made.identity)
    return made


class Replica:
    """struct vsr and the prepares it made."""

    def __init__(self) -> None:
        self.vsr = ffi.new("struct vsr *")
        lib.vsr_init(self.vsr, founding())
        self.prepares: list[CData] = []

    def step(self, kind: int, **fields: object) -> CData:
        event = ffi.new("struct vsr_event *", {"kind": kind, **fields})
        update = ffi.new("struct vsr_update *")
        lib.vsr_step(self.vsr, event, update)
        return update

    def request(self, payload: bytes, *, time_us: int = 0, principal: int = 16) -> CData:
        digest = ffi.new("uint8_t[16]")
        lib.vsr_digest(payload, len(payload), digest)
        prepare = {
            "operation": 1,
            "principal": principal,
            "payload_bytes": len(payload),
            "digest": list(digest),
        }
        update = self.step(REQUEST, prepare=prepare, time_us=time_us)
        if update.journal:
            kept = ffi.new("struct entry_prepare *")
            kept[0] = update.prepare
            self.prepares.append(kept)
        return update


def normal() -> Replica:
    replica = Replica()
    replica.step(RECOVERED)
    assert replica.vsr.status == NORMAL
    return replica


def found(replica: Replica, prepare: CData) -> bool:
    return bool(replica.step(FOUND, prepare=prepare[0]).committed.count)


@given(st.lists(st.tuples(st.binary(max_size=40), st.integers(0, 10**15)), max_size=20))
def test_ops_are_numbered_chained_and_stamped_in_order(requests: list[tuple[bytes, int]]) -> None:
    replica = normal()
    for payload, time_us in requests:
        assert replica.request(payload, time_us=time_us).status == 0
    parent, time = bytes(founding().identity), 0
    for op, prepare in enumerate(replica.prepares, start=1):
        assert prepare.op == op
        assert bytes(prepare.parent) == parent
        assert (prepare.epoch, prepare.release) == (1, 3)
        assert prepare.append_time_us > time
        parent, time = bytes(prepare.checksum), prepare.append_time_us


def test_nothing_commits_before_it_is_durable() -> None:
    replica = normal()
    for _ in range(3):
        replica.request(b"x")
    assert (replica.vsr.op, replica.vsr.commit_max, replica.vsr.commit_min) == (3, 0, 0)
    committed = replica.step(PERSISTED, op=2).committed
    assert (committed.first, committed.count) == (1, 2)
    assert (replica.vsr.commit_max, replica.vsr.commit_min) == (2, 0)
    replica.step(EXECUTED, op=1)
    assert (replica.vsr.commit_max, replica.vsr.commit_min) == (2, 1)


def test_a_replica_that_recovers_takes_no_request() -> None:
    assert name(Replica().request(b"x").status) == "REBUILDING"


@given(st.permutations(range(6)), st.integers(0, 5))
def test_recovery_follows_parents_however_prepares_lie(order: list[int], missing: int) -> None:
    before = normal()
    for index in range(6):
        before.request(b"op %d" % index)
    after = Replica()
    moved = True
    while moved:
        moved = False
        for index in order:
            if index != missing and found(after, before.prepares[index]):
                after.step(EXECUTED, op=index + 1)
                moved = True
    after.step(RECOVERED)
    assert after.vsr.op == missing
    # What was seen above the hole was durable, so the hole is damage; a cut head is not.
    assert after.vsr.status == (NORMAL if missing == 5 else DAMAGED)
    if missing < 5:
        assert (after.vsr.damaged_from, after.vsr.damaged_to) == (missing + 1, 6)
        assert name(after.request(b"x").status) == "DAMAGED"


def test_a_prepare_of_another_parent_is_not_taken() -> None:
    one, other = normal(), normal()
    one.request(b"a")
    other.request(b"b")
    other.request(b"c")
    after = Replica()
    assert found(after, one.prepares[0])
    assert not found(after, other.prepares[1])


def test_a_log_of_another_partition_is_not_taken() -> None:
    """The parent of the first prepare names the replica set (J10)."""
    other = Replica()
    identity = ffi.new("uint8_t[16]")
    lib.vsr_identity(b"cl_a".ljust(48, b"\0"), 16, 3, 1, identity)
    ffi.memmove(other.vsr.checksum, identity, 16)
    other.step(RECOVERED)
    other.request(b"a")
    after = Replica()
    assert not found(after, other.prepares[0])


def view_state(**fields: object) -> CData:
    members = [{"node": 4}, {"node": 7, "incarnation": 9, "tenure": 5}, {"node": 8}]
    return ffi.new("struct entry_view_state *", {"members": members, "members_count": 3, **fields})


def test_the_latest_view_counts_in_whatever_order_it_is_found() -> None:
    states = [
        view_state(epoch=1, view=9, log_view=9),
        view_state(epoch=5, view=2, log_view=1),
        view_state(epoch=5, view=3, log_view=1),
    ]
    for order in ((0, 1, 2), (2, 1, 0), (1, 2, 0)):
        replica = Replica()
        for index in order:
            replica.step(VIEW, view_state=states[index])
        vsr = replica.vsr
        assert (vsr.epoch, vsr.view, vsr.log_view) == (5, 3, 1)
        assert (vsr.members_count, vsr.quorum, vsr.self) == (3, 2, 1)
        assert lib.vsr_tenure(vsr) == 5
        kept = lib.vsr_view_state(vsr)
        assert (kept.epoch, kept.view, kept.members[1].incarnation) == (5, 3, 9)


def test_a_checkpoint_stands_for_what_is_below_it() -> None:
    before = normal()
    for index in range(4):
        before.request(b"%d" % index)
    after = Replica()
    after.step(CHECKPOINT, op=2, checksum=list(before.prepares[1].checksum), time_us=9)
    assert not found(after, before.prepares[0])
    assert found(after, before.prepares[2])
    assert found(after, before.prepares[3])


def test_an_abstention_stops_the_group_again_at_every_start() -> None:
    before = normal()
    before.request(b"a")
    before.request(b"b")
    after = Replica()
    after.step(ABSTAINED, op=1, op_to=4)
    assert found(after, before.prepares[0])
    after.step(EXECUTED, op=1)
    assert not found(after, before.prepares[1])
    update = after.step(RECOVERED)
    assert not update.damaged  # known before: nothing to remember anew
    assert (after.vsr.status, after.vsr.damaged_from, after.vsr.damaged_to) == (DAMAGED, 2, 4)


def encoded(**fields: object) -> bytes:
    prepare = ffi.new("struct entry_prepare *", fields)
    target = ffi.new("uint8_t[112]")
    lib.vsr_prepare_encode(prepare, target)
    return bytes(ffi.buffer(target))


GOLDEN = {
    "parent": list(range(16)),
    "digest": list(range(16, 32)),
    "op": 5,
    "append_time_us": 1_700_000_000_000_000,
    "first_view": 2,
    "principal": 17,
    "payload_bytes": 300,
    "epoch": 1,
    "operation": 1,
}


def test_a_prepare_header_is_written_as_its_golden_file_says() -> None:
    data = (DATA / "prepare_v1.bin").read_bytes()
    assert encoded(**GOLDEN) == data
    fields = struct.unpack("<16s16s16sQqQIIIHH24x", data)
    assert fields[1:] == (
        bytes(range(16)),
        bytes(range(16, 32)),
        5,
        1_700_000_000_000_000,
        2,
        17,
        300,
        1,
        1,
        1,
    )
    back = ffi.new("struct entry_prepare *")
    assert lib.vsr_prepare_decode(data, back) == 0
    assert (back.op, back.principal, back.operation) == (5, 17, 1)


@pytest.mark.parametrize(
    "change",
    [{"op": 6}, {"append_time_us": 1}, {"first_view": 3}, {"principal": 18}, {"parent": [9] * 16}],
)
def test_the_identity_covers_everything_that_must_not_change(change: dict[str, object]) -> None:
    assert encoded(**{**GOLDEN, **change})[:16] != encoded(**GOLDEN)[:16]


@given(st.integers(0, 111), st.integers(1, 255))
def test_any_changed_byte_of_a_prepare_header_is_noticed(at: int, change: int) -> None:
    data = bytearray(encoded(**GOLDEN))
    data[at] ^= change
    status = lib.vsr_prepare_decode(bytes(data), ffi.new("struct entry_prepare *"))
    assert name(status) == "JOURNAL_DAMAGED"


def test_an_answer_names_the_members_that_hold_it_and_all_there_are() -> None:
    for replica in (normal().vsr, ffi.NULL):  # NULL: a log that has not begun
        reached = lib.vsr_reached(replica)
        assert (reached.persisted, reached.replicas) == (1, 1)
