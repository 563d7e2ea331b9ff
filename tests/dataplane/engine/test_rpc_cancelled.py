"""The bridge and calls that are cancelled early: none stays, and none takes a place for ever."""

import asyncio
import struct
from collections.abc import Callable, Iterator

import pytest

from dataplane.engine.frames import Kind
from dataplane.engine.ring import Ring
from dataplane.engine.rpc import Access, Bridge, Method
from native.engine import Frame
from tests.dataplane.scripted_engine import ScriptedEngine

SHARD, SLOT = 0, 7
CALLER = struct.pack("<IIII16s", 16, 1, 1, 3, b"key")


class Cancelling(ScriptedEngine):
    """An engine whose flags of cancelled calls are set by the test; read once."""

    def __init__(self) -> None:
        super().__init__()
        self.flags: list[tuple[int, int, int]] = []

    def cancelled(self) -> list[tuple[int, int, int]]:
        """What was flagged since."""
        found, self.flags = self.flags, []
        return found


@pytest.fixture
def engine() -> Iterator[Cancelling]:
    scripted = Cancelling()
    yield scripted
    scripted.close()


def opened(tag: int) -> Frame:
    return Frame(Kind.OPEN, SHARD, SLOT, tag, body=CALLER + b"/test/Hang")


def story(engine: Cancelling, *steps: Callable[[], None]) -> int:
    """Calls under way after these steps; the ring is drained and the loop turns behind each."""

    async def hang(_: object) -> None:
        await asyncio.Event().wait()

    async def run() -> int:
        ring = Ring(engine)
        async with asyncio.TaskGroup() as tasks:
            bridge = Bridge(ring, {"/test/Hang": Method(Access.ANY_KEY, hang)}, tasks)
            for step in steps:
                step()
                ring.drain()
                for _ in range(5):
                    await asyncio.sleep(0)
            left = bridge.calls_count()
            quiet = await bridge.drain(0.05)
        assert quiet == (left == 0)
        return left

    return asyncio.run(run())


def flagged(engine: Cancelling, tag: int) -> None:
    engine.flags.append((SHARD, SLOT, tag))


def test_a_call_that_is_cancelled_in_the_turn_of_its_opening_leaves_nothing(
    engine: Cancelling,
) -> None:
    def both() -> None:
        engine.post(opened(1))
        flagged(engine, 1)

    assert story(engine, both) == 0


def test_a_flag_that_is_read_before_the_opening_counts(engine: Cancelling) -> None:
    assert story(engine, lambda: flagged(engine, 1), lambda: engine.post(opened(1))) == 0


def test_a_flag_of_a_call_that_was_over_concerns_no_later_one(engine: Cancelling) -> None:
    assert story(engine, lambda: flagged(engine, 1), lambda: engine.post(opened(2))) == 1


def test_a_call_whose_slot_has_another_is_over(engine: Cancelling) -> None:
    """The flag of tag 2 stands where that of tag 1 stood."""

    def two() -> None:
        engine.post(opened(1), opened(2))

    assert story(engine, two, lambda: flagged(engine, 2)) == 0
    assert story(engine, two) == 1
