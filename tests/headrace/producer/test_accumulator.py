"""Records into batches: what is due when, what is refused, what memory is held."""

import asyncio
import threading
import time
from itertools import pairwise

import pytest

from headrace.codec import Record
from headrace.errors import BufferFull, Closed, DeadlineExceeded, Fatal, RecordTooLarge
from headrace.messages import BatchAck, Value, record_of, size_of
from headrace.producer.accumulator import Accumulator, Memory, Outcome, chunked
from headrace.transport.connection import Route

ROUTE = Route("orders", 16, 1, 4096, "none", ("a:1",) * 4, "cl_test")


def accumulator(wakes: list[int] | None = None, batch_bytes: int = 1024) -> Accumulator:
    seen = [] if wakes is None else wakes
    memory = Memory(1 << 20)
    return Accumulator(memory, batch_bytes=batch_bytes, linger=0.005, wake=lambda: seen.append(1))


def put(into: Accumulator, record: Record, *, urgent: bool = False) -> None:
    into.append(ROUTE, record, None, size_of(record), urgent=urgent)


def never_idle(topic: str, partition: int) -> bool:
    return False


def ack(count: int = 1) -> BatchAck:
    return BatchAck("orders", 0, 40, count, 1_000_000, 1, 1, duplicate=False)


def test_a_record_lingers_and_is_then_due() -> None:
    held = accumulator()
    put(held, record_of(b"one"))
    now = time.monotonic()
    batches, next_at = held.due(now, never_idle)
    assert batches == []
    assert next_at is not None
    batches, next_at = held.due(next_at, never_idle)
    assert [len(b.records) for b in batches] == [1]
    assert next_at is None


def test_an_awaited_record_is_due_at_once_when_its_partition_is_idle() -> None:
    held = accumulator()
    put(held, record_of(b"one"), urgent=True)
    now = time.monotonic()
    assert held.due(now, never_idle)[0] == []
    assert len(held.due(now, lambda topic, partition: True)[0]) == 1


def test_a_full_batch_is_due_and_the_sticky_partition_moves_on() -> None:
    held = accumulator(batch_bytes=300)
    for _ in range(20):
        put(held, record_of(bytes(100)))
    batches, _ = held.due(time.monotonic(), never_idle)
    assert all(b.size_bytes <= 300 for b in batches)
    assert all(a.partition != b.partition for a, b in pairwise(batches))


def test_records_of_one_key_stay_in_order_in_one_partition() -> None:
    held = accumulator(batch_bytes=200)
    for i in range(30):
        put(held, record_of(str(i), key="k"))
    batches, _ = held.due(time.monotonic(), never_idle, everything=True)
    assert len({b.partition for b in batches}) == 1
    assert [r.value for b in batches for r in b.records] == [str(i).encode() for i in range(30)]


def test_a_whole_batch_goes_behind_what_is_open_for_its_partition() -> None:
    held = accumulator()
    record = record_of(b"first")
    held.append(ROUTE, record, 2, size_of(record), urgent=False)
    held.append_batch(ROUTE, [record_of(b"second")], 2, 100)
    batches, _ = held.due(time.monotonic(), never_idle)
    assert [b.records[0].value for b in batches] == [b"first", b"second"]


def test_the_io_thread_is_woken_per_batch_and_not_per_record() -> None:
    wakes: list[int] = []
    held = accumulator(wakes)
    for _ in range(5):
        put(held, record_of(b"x"))
    assert len(wakes) == 1


def test_a_record_that_no_batch_can_hold_is_refused_with_the_limit() -> None:
    record = record_of(bytes(5000))
    with pytest.raises(RecordTooLarge, match="4096"):
        accumulator().check(ROUTE, record, size_of(record))


def test_chunks_hold_every_item_and_never_exceed_their_room() -> None:
    items: list[Value | Record] = [
        bytes(60),
        "text",
        {"a": 1},
        record_of(b"v", key=b"k"),
        *[bytes(90)] * 20,
    ]
    chunks = list(chunked(items, ROUTE, 400, None))
    assert sum(len(records) for _, records, _ in chunks) == len(items)
    assert all(size <= 400 for _, _, size in chunks)
    assert [r.value for _, records, _ in chunks for r in records if r.key is None][:3] == [
        bytes(60),
        b"text",
        b'{"a":1}',
    ]


def test_memory_makes_callers_wait_until_some_is_given_back() -> None:
    memory = Memory(100)
    memory.take(80, None)
    with pytest.raises(BufferFull, match="80 of 100"):
        memory.take(40, 0.01)
    waiter = threading.Thread(target=memory.take, args=(40, None))
    waiter.start()
    memory.give_back(80)
    waiter.join(120)
    assert memory.used == 40


def test_memory_can_be_awaited() -> None:
    async def main() -> int:
        memory = Memory(100)
        memory.take(80, None)
        waiting = asyncio.ensure_future(memory.take_async(40))
        await asyncio.sleep(0)
        memory.give_back(80)
        await asyncio.wait_for(waiting, 5)
        return memory.used

    assert asyncio.run(main()) == 40


def test_one_item_larger_than_the_memory_may_pass_alone() -> None:
    memory = Memory(100)
    assert memory.try_take(500)
    assert not memory.try_take(1)


def test_closed_memory_wakes_those_who_wait() -> None:
    memory = Memory(10)
    memory.take(10, None)
    caught: list[Exception] = []

    def wait() -> None:
        try:
            memory.take(10, None)
        except Closed as error:
            caught.append(error)

    waiter = threading.Thread(target=wait)
    waiter.start()
    memory.close()
    waiter.join(120)
    assert len(caught) == 1


def test_an_outcome_answers_waiters_of_every_kind() -> None:
    outcome = Outcome()
    called: list[int] = []
    outcome.add_callback(lambda: called.append(1))

    async def main() -> BatchAck:
        waiting = asyncio.ensure_future(outcome.wait_async())
        await asyncio.sleep(0)
        outcome.resolve(ack(3))
        return await waiting

    assert asyncio.run(main()).count == 3
    assert outcome.wait(0).of(2).offset == 42
    assert called == [1]


def test_an_outcome_is_settled_once() -> None:
    outcome = Outcome()
    outcome.fail(Fatal("first"))
    outcome.resolve(ack())
    with pytest.raises(Fatal, match="first"):
        outcome.result()


def test_waiting_for_an_outcome_has_a_timeout() -> None:
    with pytest.raises(DeadlineExceeded):
        Outcome().wait(0.01)
