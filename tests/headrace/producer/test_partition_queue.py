"""Exactly once under any schedule: PartitionQueue against a small model of the node, searched by
Hypothesis."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.codec import Record
from headrace.errors import (
    DeadlineExceeded,
    Fatal,
    HeadraceError,
    Invalid,
    OutcomeUnknown,
    OutOfSequence,
    Retryable,
    SessionExpired,
)
from headrace.producer.accumulator import Batch
from headrace.producer.partition_queue import IN_FLIGHT_MAX, PartitionQueue, State

EVENTS = [
    *["add", "add_poison", "serve", "serve", "reply", "reply"],
    *["cut", "cut_unwritten", "busy", "expire", "late", "abandon"],
]
QUIET = ["add", "serve", "reply", "cut", "cut_unwritten", "busy"]


def batch_of(label: str, count: int = 2) -> Batch:
    batch = Batch("orders", 0, 0.0)
    batch.records = [Record(None, f"{label}.{i}".encode(), 0) for i in range(count)]
    return batch


@dataclass
class Wire:
    """A request or a reply under way."""

    batch: Batch
    producer_id: bytes
    sequence: int
    error: HeadraceError | None = None


@dataclass
class Node:
    """The log and the producer table of one partition; loses nothing that it stored."""

    log: list[Batch] = field(default_factory=list)
    producers: dict[bytes, int] = field(default_factory=dict)
    stored: set[tuple[bytes, int]] = field(default_factory=set)
    busy: int = 0

    def serve(self, request: Wire, poisoned: set[Batch]) -> HeadraceError | None:
        key = (request.producer_id, request.sequence)
        expected = self.producers.get(request.producer_id)
        if key in self.stored:
            return None
        if self.busy:
            self.busy -= 1
            return Retryable("busy")
        if expected is None and request.sequence > 0:
            return SessionExpired("not known")
        if request.sequence != (expected or 0):
            return OutOfSequence("gap", expected=expected or 0)
        if request.batch in poisoned:
            return Invalid("poison")
        self.log.append(request.batch)
        self.stored.add(key)
        self.producers[request.producer_id] = request.sequence + len(request.batch.records)
        return None


class World:
    """One producer, one partition, one connection at a time."""

    def __init__(self) -> None:
        self.ids = 0
        self.queue = PartitionQueue(b"0", self.fresh_id)
        self.node = Node()
        self.requests: list[Wire] = []
        self.replies: list[Wire] = []
        self.added: list[Batch] = []
        self.poisoned: set[Batch] = set()
        self.acked: list[Batch] = []
        self.failed: dict[Batch, HeadraceError] = {}

    def fresh_id(self) -> bytes:
        self.ids += 1
        return str(self.ids).encode()

    def send(self) -> None:
        self.failed.update(self.queue.casualties())
        while (batch := self.queue.take()) is not None:
            assert batch.sequence is not None
            self.requests.append(Wire(batch, self.queue.producer_id, batch.sequence))
        assert self.queue.in_flight <= IN_FLIGHT_MAX

    def add(self, *, poison: bool) -> None:
        batch = batch_of(str(len(self.added)))
        self.added.append(batch)
        self.poisoned |= {batch} if poison else set()
        self.queue.add(batch)

    def serve(self) -> None:
        for request in self.requests[:1]:
            request.error = self.node.serve(request, self.poisoned)
            self.replies.append(request)
        del self.requests[:1]

    def reply(self) -> None:
        for reply in self.replies[:1]:
            if self.queue.holds(reply.batch):
                self.answer(reply.batch, reply.error)
        del self.replies[:1]

    def answer(self, batch: Batch, error: HeadraceError | None) -> None:
        if error is None:
            self.queue.acked(batch)
            self.acked.append(batch)
        else:
            self.give_up(batch, self.queue.refused(batch, error))

    def give_up(self, batch: Batch, error: HeadraceError | None) -> None:
        self.failed.update({batch: error} if error is not None else {})

    def cut(self, *, unwritten: bool = False) -> None:
        # The node may have served what was written, with any status; nobody hears of it. What the
        # node did not serve here may have been written or still lain in the client.
        for lost in self.replies + self.requests:
            written = lost in self.replies or not unwritten
            if self.queue.holds(lost.batch):
                self.give_up(lost.batch, self.queue.lost(lost.batch, written=written))
        self.requests, self.replies = [], []

    def abandon(self) -> None:
        # Every stream ends with a TERMINAL status.
        self.cut()
        while (oldest := self.queue.oldest) is not None:
            self.give_up(oldest, self.queue.give_up(oldest, Invalid("malformed")))

    def late(self) -> None:
        oldest = self.queue.oldest
        if oldest is not None:
            self.give_up(oldest, self.queue.give_up(oldest, DeadlineExceeded("late")))
            self.requests = [r for r in self.requests if r.batch is not oldest]

    def step(self, event: str) -> None:
        match event:
            case "add" | "add_poison":
                self.add(poison=event == "add_poison")
            case "busy":
                self.node.busy += 1
            case "expire":
                self.node.producers.clear()
            case "serve":
                self.serve()
            case "reply":
                self.reply()
            case "cut" | "cut_unwritten":
                self.cut(unwritten=event == "cut_unwritten")
            case "abandon":
                self.abandon()
            case "late":
                self.late()
        self.send()

    def drain(self) -> None:
        self.node.busy = 0
        for _ in range(1000):
            if self.queue.idle:
                return
            self.serve()
            self.reply()
            self.send()
        raise AssertionError("the queue never became idle")


@settings(max_examples=400, deadline=None)
@given(events=st.lists(st.sampled_from(EVENTS), max_size=60))
def test_acked_is_stored_once_in_order_and_failed_is_not_stored(events: list[str]) -> None:
    world = World()
    for event in events:
        world.step(event)
    world.drain()

    for batch in world.added:
        assert world.node.log.count(batch) <= 1, "stored twice"
    for batch in world.acked:
        assert world.node.log.count(batch) == 1, "acked and not stored"
    for batch, error in world.failed.items():
        if not isinstance(error, OutcomeUnknown):
            assert batch not in world.node.log, "refused for good and stored"
    assert set(world.acked) | set(world.failed) == set(world.added)
    positions = [world.added.index(batch) for batch in world.node.log if batch in world.acked]
    assert positions == sorted(positions), "out of order"


@settings(max_examples=200, deadline=None)
@given(events=st.lists(st.sampled_from(QUIET), max_size=60))
def test_without_deadlines_and_expiry_every_batch_is_acked(events: list[str]) -> None:
    world = World()
    for event in events:
        world.step(event)
    world.drain()
    assert world.failed == {}
    assert world.node.log == world.added


def test_a_batch_that_is_sent_again_keeps_its_sequence() -> None:
    queue = PartitionQueue(b"id", lambda: b"new")
    queue.add(batch_of("a", 3))
    queue.add(batch_of("b", 4))
    first, second = queue.take(), queue.take()
    assert first is not None
    assert second is not None
    assert (first.sequence, second.sequence) == (0, 3)
    queue.lost(first)
    assert queue.take() is None
    queue.lost(second)
    assert (queue.take(), queue.take()) == (first, second)
    assert (first.sequence, second.sequence, queue.producer_id) == (0, 3, b"id")


def test_without_idempotence_a_lost_batch_is_reported_and_not_repeated() -> None:
    queue = PartitionQueue(bytes(16), lambda: bytes(16), idempotent=False)
    batch = batch_of("a")
    queue.add(batch)
    queue.add(batch_of("b"))
    assert queue.take() is batch
    assert queue.take() is None
    assert isinstance(queue.lost(batch), OutcomeUnknown)
    following = queue.take()
    assert following is not None
    assert following.sequence == 0


def test_a_gap_at_the_head_is_an_error_of_its_own() -> None:
    queue = PartitionQueue(b"id", lambda: b"new")
    batch = batch_of("a")
    queue.add(batch)
    assert queue.take() is batch
    with pytest.raises(OutOfSequence):
        raise queue.refused(batch, OutOfSequence("gap")) or Fatal("kept")
    assert batch.state == State.REFUSED
