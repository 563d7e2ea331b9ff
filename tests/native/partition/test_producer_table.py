"""producer_table.c against a small model: P1 and P2 at apply, and the primary's admission."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from native._engine_sim import ffi, lib
from tests.support.builders.storage import Arena, name

if TYPE_CHECKING:
    from native._engine_sim import CData

DEPTH, CAP = 8, 256
HOUR_US = 3600 * 1_000_000
EXPIRY_US = 168 * HOUR_US


@dataclass
class Known:
    epoch: int
    next_sequence: int
    used_us: int
    batches: list[tuple[int, int, int]] = field(default_factory=list)  # sequence, count, offset


class Model:
    """What is remembered of each producer, in order of last use."""

    def __init__(self, cap: int = CAP) -> None:
        self.cap = cap
        self.known: dict[int, Known] = {}

    def apply(
        self, producer: int, epoch: int, sequence: int, count: int, offset: int, now_us: int
    ) -> tuple[str, int | None]:
        """(status, offset of the batch or what was expected)."""
        self.known = {p: k for p, k in self.known.items() if k.used_us > now_us - EXPIRY_US}
        known = self.known.get(producer)
        if known is None or epoch > known.epoch:
            if sequence != 0:
                return "SESSION_EXPIRED", None
            batches: list[tuple[int, int, int]] = []
        elif epoch < known.epoch:
            return "PRODUCER_FENCED", None
        elif sequence == known.next_sequence:
            batches = known.batches
        else:
            for at, size, stored in known.batches:
                if (at, size) == (sequence, count):
                    return "DUPLICATE", stored
            if sequence + count <= known.batches[0][0]:
                return "ALREADY_COMMITTED", None
            return "OUT_OF_SEQUENCE", known.next_sequence
        if producer not in self.known and len(self.known) == self.cap:
            del self.known[next(iter(self.known))]
        self.known.pop(producer, None)
        self.known[producer] = Known(
            epoch, sequence + count, now_us, [*batches, (sequence, count, offset)][-DEPTH:]
        )
        return "OK", offset


class Table:
    """The table in C."""

    def __init__(self, entries: int = 1024, reserve: int = 0) -> None:
        self.arena = Arena(lib.producer_pool_bytes(entries, reserve))
        self.pool = ffi.new("struct producer_pool *")
        assert lib.producer_pool_init(self.pool, self.arena.arena, entries, reserve) == 0
        self.entries = entries
        self.table = ffi.new("struct producer_table *")
        lib.producer_table_init(self.table, self.pool)

    def batch(self, producer: int, epoch: int, sequence: int, count: int) -> CData:
        batch: CData = ffi.new("struct producer_batch *")
        batch.producer.bytes = producer.to_bytes(16, "little")
        batch.epoch, batch.base_sequence, batch.record_count = epoch, sequence, count
        return batch

    def apply(
        self, producer: int, epoch: int, sequence: int, count: int, offset: int, now_us: int
    ) -> tuple[str, int | None]:
        batch = self.batch(producer, epoch, sequence, count)
        lib.producer_table_expire(self.table, now_us)
        return answer(lib.producer_table_apply(self.table, batch, offset, now_us), offset)

    def admit(self, producer: int, epoch: int, sequence: int, count: int) -> str:
        batch = self.batch(producer, epoch, sequence, count)
        return answer(lib.producer_table_admit(self.table, batch), 0)[0]


def answer(decision: CData, offset: int) -> tuple[str, int | None]:
    if decision.duplicate:
        return "DUPLICATE", decision.base_offset
    status = name(decision.status)
    if status == "OUT_OF_SEQUENCE":
        return status, decision.expected
    return status, offset if status == "OK" else None


steps = st.tuples(
    st.integers(1, 4),  # producer
    st.sampled_from([0, 0, 0, 0, 1, 2]),  # epoch
    st.sampled_from(["next", "next", "next", "repeat", "old", "ahead", "zero"]),
    st.integers(1, 3),  # count
    st.sampled_from([1, 1, 1, HOUR_US, EXPIRY_US // 2, EXPIRY_US]),
)


def sequence_of(model: Model, producer: int, how: str) -> int:
    """A base sequence that means what ``how`` says."""
    known = model.known.get(producer)
    following = known.next_sequence if known else 0
    if how == "repeat" and known:
        return known.batches[-1][0]
    if how == "old" and known:
        return max(0, known.batches[0][0] - 3)
    return {"ahead": following + 2, "zero": 0}.get(how, following)


@settings(max_examples=150)
@given(st.lists(steps, max_size=60))
def test_decisions_at_apply_follow_the_model(history: list[tuple[int, int, str, int, int]]) -> None:
    model, table = Model(), Table()
    now_us, offset = EXPIRY_US * 2, 100
    for producer, epoch, how, count, later_us in history:
        now_us += later_us
        batch = (producer, epoch, sequence_of(model, producer, how), count, offset, now_us)
        expected = model.apply(*batch)
        assert table.apply(*batch) == expected
        offset += count if expected[0] == "OK" else 0
    assert table.table.remembered_count == len(model.known)


def test_a_repeated_batch_gets_its_first_offset_until_it_is_too_old() -> None:
    table = Table()
    for index in range(20):
        assert table.apply(1, 0, index * 2, 2, index * 2, index + 1)[0] == "OK"
    assert table.apply(1, 0, 38, 2, 40, 21) == ("DUPLICATE", 38)
    assert table.apply(1, 0, 24, 2, 40, 22) == ("DUPLICATE", 24)
    assert table.apply(1, 0, 22, 2, 40, 23) == ("ALREADY_COMMITTED", None)
    assert table.apply(1, 0, 42, 2, 40, 24) == ("OUT_OF_SEQUENCE", 40)
    assert table.apply(2, 0, 1, 1, 40, 25) == ("SESSION_EXPIRED", None)


def test_at_the_cap_the_least_recently_used_producer_goes() -> None:
    table = Table()
    for producer in range(1, CAP + 1):
        table.apply(producer, 0, 0, 1, producer, producer)
    assert table.apply(1, 0, 1, 1, 500, 300)[0] == "OK"
    assert table.apply(CAP + 1, 0, 0, 1, 501, 301)[0] == "OK"
    assert table.apply(2, 0, 1, 1, 502, 302) == ("SESSION_EXPIRED", None)
    assert table.apply(1, 0, 2, 1, 502, 303)[0] == "OK"
    assert table.table.remembered_count == CAP


def test_at_most_eight_batches_are_unresolved() -> None:
    table = Table()
    for sequence in range(DEPTH):
        assert table.admit(1, 0, sequence, 1) == "OK"
    assert table.admit(1, 0, DEPTH, 1) == "TOO_MANY_IN_FLIGHT"
    assert table.apply(1, 0, 0, 1, 0, 1)[0] == "OK"
    assert table.admit(1, 0, DEPTH, 1) == "OK"
    assert table.admit(2, 0, 0, 1) == "OK"


def test_admission_refuses_what_apply_would_refuse() -> None:
    table = Table()
    assert table.admit(1, 0, 1, 1) == "SESSION_EXPIRED"
    assert table.admit(1, 0, 0, 2) == "OK"
    assert table.admit(1, 0, 3, 1) == "OUT_OF_SEQUENCE"
    assert table.admit(1, 0, 2, 1) == "OK"
    assert table.apply(1, 0, 0, 2, 0, 1)[0] == "OK"
    assert table.admit(1, 0, 0, 2) == "DUPLICATE"
    assert table.apply(1, 0, 2, 1, 2, 2)[0] == "OK"
    assert table.admit(1, 0, 4, 1) == "OUT_OF_SEQUENCE"


def test_a_cancelled_admission_leaves_the_sequence_free() -> None:
    table = Table()
    assert table.admit(1, 0, 0, 5) == "OK"
    lib.producer_table_cancel(table.table, table.batch(1, 0, 0, 5))
    assert table.pool.free_count == table.entries
    assert table.admit(1, 0, 0, 5) == "OK"


@pytest.mark.parametrize("entries", [1, 3])
def test_a_full_pool_refuses_new_producers_and_only_those(entries: int) -> None:
    table = Table(entries)
    for producer in range(1, entries + 1):
        assert table.admit(producer, 0, 0, 1) == "OK"
    assert table.admit(99, 0, 0, 1) == "PRODUCERS_FULL"
    for producer in range(1, entries + 1):
        assert table.apply(producer, 0, 0, 1, producer, producer)[0] == "OK"
        assert table.admit(producer, 0, 1, 1) == "OK"


def test_a_replay_may_hold_more_producers_than_were_admitted() -> None:
    table = Table(2, reserve=2)
    assert [table.admit(producer, 0, 0, 1) for producer in (1, 2, 3)] == [
        "OK",
        "OK",
        "PRODUCERS_FULL",
    ]
    replayed = Table(2, reserve=2)
    for producer in range(1, 5):
        assert replayed.apply(producer, 0, 0, 1, producer, producer)[0] == "OK"
    assert replayed.admit(5, 0, 0, 1) == "PRODUCERS_FULL"


@settings(max_examples=60)
@given(st.lists(steps, max_size=40), st.lists(st.booleans(), min_size=40, max_size=40))
def test_admission_changes_no_decision_at_apply(
    history: list[tuple[int, int, str, int, int]], admitted: list[bool]
) -> None:
    model, primary, backup = Model(), Table(), Table()
    now_us, offset = EXPIRY_US * 2, 100
    for (producer, epoch, how, count, later_us), admit in zip(history, admitted, strict=False):
        now_us += later_us
        sequence = sequence_of(model, producer, how)
        if admit:
            primary.admit(producer, epoch, sequence, count)
        batch = (producer, epoch, sequence, count, offset, now_us)
        expected = model.apply(*batch)
        assert primary.apply(*batch) == expected
        assert backup.apply(*batch) == expected
        offset += count if expected[0] == "OK" else 0


def test_everything_goes_back_to_the_pool() -> None:
    table = Table()
    for producer in range(1, 300):
        table.admit(producer, 0, 0, 1)
        table.apply(producer, 0, 0, 1, producer, producer)
    table.admit(500, 0, 0, 1)
    lib.producer_table_deinit(table.table)
    assert table.pool.free_count == table.entries
