"""The host's end of the ring: one bad handler, frame or partition never costs the others theirs."""

import asyncio
from collections.abc import Iterable, Iterator

import pytest

from dataplane.engine.frames import EngineResult, Kind
from dataplane.engine.ring import (
    BODY_BYTES_MAX,
    CROSSINGS_MAX,
    FRAMES_SENT_AT_ONCE_MAX,
    REQUESTS_MAX,
    HandlerFailed,
    Ring,
)
from native.engine import Frame
from tests.dataplane.scripted_engine import ScriptedEngine

ASK = Frame(Kind.DESCRIBE)  # the scripted engine never answers it
PATIENCE_S = 10


@pytest.fixture
def engine() -> Iterator[ScriptedEngine]:
    scripted = ScriptedEngine()
    yield scripted
    scripted.close()


def test_a_handler_that_fails_takes_nothing_from_the_frames_behind_it(
    engine: ScriptedEngine,
) -> None:
    ring = Ring(engine)
    applied: list[int] = []
    failures: list[BaseException] = []

    def defect(frame: Frame) -> None:
        raise RuntimeError("deque mutated during iteration")

    ring.handle((Kind.METER_CLOSE,), defect)
    ring.handle((Kind.METADATA_APPLY,), lambda frame: applied.append(frame.arg0))
    ring.handle_failure(failures.append)
    engine.post(Frame(Kind.METADATA_APPLY, arg0=1), Frame(Kind.METER_CLOSE))
    engine.post(Frame(Kind.METADATA_APPLY, arg0=2))
    ring.post(Frame(Kind.HOST_BEAT))
    ring.drain()
    assert applied == [1, 2]
    assert [frame.kind for frame in engine.sent] == [Kind.HOST_BEAT]
    assert [(type(error), str(error)) for error in failures] == [
        (
            HandlerFailed,
            "the handler of METER_CLOSE failed: RuntimeError('deque mutated during iteration')",
        )
    ]


def test_a_frame_that_cannot_cross_is_refused_to_its_poster_alone(engine: ScriptedEngine) -> None:
    async def story() -> None:
        ring = Ring(engine)
        ring.post(Frame(Kind.METADATA_APPLIED, body=bytes(BODY_BYTES_MAX)))
        with pytest.raises(ValueError, match="fit into a frame"):
            ring.post(Frame(Kind.SEND_MESSAGE, body=bytes(BODY_BYTES_MAX + 1)))
        with pytest.raises(ValueError, match="fit into a frame"):
            await ring.request(
                Frame(Kind.METADATA_SUBMIT, body=bytes(BODY_BYTES_MAX + 1)), timeout_s=1
            )
        ring.post(Frame(Kind.HOST_BEAT))
        ring.drain()
        assert [frame.kind for frame in engine.sent] == [Kind.METADATA_APPLIED, Kind.HOST_BEAT]

    asyncio.run(story())


def test_the_deadline_of_a_request_covers_the_wait_for_its_turn(engine: ScriptedEngine) -> None:
    async def story() -> None:
        ring = Ring(engine)
        ring.open(asyncio.get_running_loop())
        stuck = [asyncio.create_task(ring.request(ASK, timeout_s=60)) for _ in range(REQUESTS_MAX)]
        await engine.until(lambda: len(engine.sent) == REQUESTS_MAX)
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(TimeoutError):
                await ring.request(ASK, timeout_s=0)
        assert len(engine.sent) == REQUESTS_MAX
        engine.post(Frame(Kind.REPLY, arg0=engine.sent[0].arg0))
        assert (await stuck[0]).result == EngineResult.OK
        late = asyncio.create_task(ring.request(ASK, timeout_s=60))
        await engine.until(lambda: len(engine.sent) == REQUESTS_MAX + 1)
        ring.close()
        await asyncio.gather(late, *stuck)

    asyncio.run(story())


def test_a_request_that_waits_for_its_turn_ends_with_the_ring(engine: ScriptedEngine) -> None:
    async def story() -> None:
        ring = Ring(engine)
        ring.open(asyncio.get_running_loop())
        requests = [
            asyncio.create_task(ring.request(ASK, timeout_s=PATIENCE_S))
            for _ in range(REQUESTS_MAX + 1)
        ]
        await engine.until(lambda: len(engine.sent) == REQUESTS_MAX)
        ring.close()
        replies = await asyncio.gather(*requests)
        assert {reply.result for reply in replies} == {EngineResult.STOPPING}

    asyncio.run(story())


class NarrowEngine(ScriptedEngine):
    """Takes no more frames than it has room for, and hands out frames without an end."""

    def __init__(self) -> None:
        super().__init__()
        self.room = 0
        self.offered: list[int] = []
        self.endless = False
        self.receptions = 0

    def receive(self) -> list[Frame]:
        """One more, or what waits."""
        self.receptions += 1
        return [Frame(Kind.METADATA_APPLY)] if self.endless else super().receive()

    def send(self, frames: Iterable[Frame]) -> int:
        """As many as there is room for."""
        offered = list(frames)
        self.offered.append(len(offered))
        taken = super().send(offered[: self.room])
        self.room -= taken
        return taken


class SteppedLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock stands still between turns."""

    now = 0.0

    def time(self) -> float:
        """The time of this turn."""
        return self.now

    def turn(self, *, later_s: float = 0.0) -> None:
        """Do what is due `later_s` from now, and nothing that follows from it."""
        self.now += later_s
        self.call_soon(self.stop)
        self.run_forever()


@pytest.fixture
def narrow() -> Iterator[NarrowEngine]:
    engine = NarrowEngine()
    yield engine
    engine.close()


@pytest.fixture
def loop() -> Iterator[SteppedLoop]:
    stepped = SteppedLoop()
    yield stepped
    stepped.close()


def test_a_full_ring_is_tried_again_once_at_a_time_with_a_part_of_what_waits(
    narrow: NarrowEngine, loop: SteppedLoop
) -> None:
    ring = Ring(narrow)
    ring.open(loop)
    for number in range(3 * FRAMES_SENT_AT_ONCE_MAX):
        ring.post(Frame(Kind.HOST_BEAT, arg0=number))
    for _ in range(5):
        ring.drain()
    loop.turn()
    narrow.offered.clear()
    for _ in range(3):
        loop.turn(later_s=1)
    assert narrow.offered == 3 * [FRAMES_SENT_AT_ONCE_MAX]
    narrow.room = FRAMES_SENT_AT_ONCE_MAX + 1
    loop.turn(later_s=1)
    narrow.room = 3 * FRAMES_SENT_AT_ONCE_MAX
    ring.drain()
    ring.post(Frame(Kind.HOST_BEAT, arg0=3 * FRAMES_SENT_AT_ONCE_MAX))
    loop.turn()
    assert [frame.arg0 for frame in narrow.sent] == list(range(3 * FRAMES_SENT_AT_ONCE_MAX + 1))
    ring.close()


def test_a_long_outbox_crosses_over_several_turns(narrow: NarrowEngine, loop: SteppedLoop) -> None:
    ring = Ring(narrow)
    ring.open(loop)
    a_turn = CROSSINGS_MAX * FRAMES_SENT_AT_ONCE_MAX
    narrow.room = 2 * a_turn
    for _ in range(a_turn + 1):
        ring.post(Frame(Kind.HOST_BEAT))
    loop.turn()
    assert len(narrow.sent) == a_turn
    loop.turn()
    assert len(narrow.sent) == a_turn + 1
    ring.close()


def test_an_engine_that_never_runs_dry_is_drained_once_a_turn(
    narrow: NarrowEngine, loop: SteppedLoop
) -> None:
    ring = Ring(narrow)
    ring.handle((Kind.METADATA_APPLY,), lambda frame: None)
    ring.open(loop)
    narrow.endless = True
    for _ in range(5):
        ring.drain()
    for _ in range(3):
        narrow.receptions = 0
        loop.turn()
        assert narrow.receptions == CROSSINGS_MAX
    ring.close()
    narrow.receptions = 0
    loop.turn()
    assert narrow.receptions == 0
