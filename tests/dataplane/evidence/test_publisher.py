"""Closed windows on their way to `_usage`, from a scripted engine: dropped, repeated, restarted,
torn."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.engine.frames import EngineResult, Kind, PartitionId
from dataplane.engine.partition_client import PartitionClient
from dataplane.engine.ring import Ring
from dataplane.evidence.publisher import EvidencePublisher
from dataplane.evidence.spool import Spool
from dataplane.metadata.state import State
from tests.dataplane.scripted_engine import PATIENCE_S, ScriptedEngine
from tests.support.builders.commands import Log, put_topic

P = PartitionId(16, 2, 0)
Q = PartitionId(16, 2, 1)


def _log() -> Log:
    log = Log()
    log.do(put_topic())
    return log


class Host:
    """Ring, spool and publisher of one process. `carry` starts its task."""

    def __init__(self, engine: ScriptedEngine, spool: Spool, *, incoming_max: int) -> None:
        self.engine = engine
        self.spool = spool
        self.ring = Ring(engine)
        state = _log().machine.state

        @contextmanager
        def reading() -> Iterator[State]:
            yield state

        self.publisher = EvidencePublisher(
            self.ring,
            PartitionClient(self.ring, shards=1),
            spool,
            reading=reading,
            incoming_max=incoming_max,
        )
        self._task: asyncio.Task[None] | None = None

    def carry(self) -> None:
        """Let the windows go on."""
        self._task = asyncio.create_task(self.publisher.run())

    async def end(self) -> None:
        """End as a process does: nothing more is carried."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self.ring.close()
        self.spool.close()


@asynccontextmanager
async def running(
    engine: ScriptedEngine, folder: Path, *, incoming_max: int = 4096
) -> AsyncIterator[Host]:
    """A host that listens; nothing is carried yet."""
    host = Host(engine, Spool(folder), incoming_max=incoming_max)
    host.ring.open(asyncio.get_running_loop())
    try:
        yield host
    finally:
        await host.end()


@pytest.fixture
def engine() -> Iterator[ScriptedEngine]:
    scripted = ScriptedEngine()
    yield scripted
    scripted.close()


def test_a_window_without_room_is_not_skipped_by_the_next(
    engine: ScriptedEngine, tmp_path: Path
) -> None:
    async def story() -> None:
        async with running(engine, tmp_path, incoming_max=4) as host:
            engine.close_windows(P, 5)  # The fifth finds no room.
            host.ring.drain()
            host.carry()
            await engine.until(lambda: engine.acknowledged.get(P) == 4)
            engine.close_windows(P)  # The sixth finds room, before the fifth came again.
            host.ring.drain()
            await host.publisher.wait_idle()
            assert (P, 6) not in engine.usage()
            engine.repeat()
            await engine.until(lambda: engine.acknowledged.get(P) == 6)
            assert engine.usage() == [(P, sequence) for sequence in range(1, 7)]

    asyncio.run(story())


def test_a_first_window_without_room_is_not_skipped_either(
    engine: ScriptedEngine, tmp_path: Path
) -> None:
    async def story() -> None:
        async with running(engine, tmp_path, incoming_max=1) as host:
            engine.close_windows(Q)
            engine.close_windows(P)
            host.ring.drain()
            host.carry()
            await engine.until(lambda: engine.acknowledged.get(Q) == 1)
            engine.close_windows(P)
            host.ring.drain()
            await host.publisher.wait_idle()
            assert engine.usage() == [(Q, 1)]
            for _ in range(2):
                engine.repeat()
                host.ring.drain()
                await host.publisher.wait_idle()
            assert engine.usage() == [(Q, 1), (P, 1), (P, 2)]
            await engine.until(lambda: engine.acknowledged.get(P) == 2)

    asyncio.run(story())


def test_a_repeat_is_acknowledged_again_and_stored_once(
    engine: ScriptedEngine, tmp_path: Path
) -> None:
    async def story() -> None:
        async with running(engine, tmp_path) as host:
            host.carry()
            engine.close_windows(P, 3)
            await engine.until(lambda: engine.acknowledged.get(P) == 3)
            engine.acknowledged.clear()  # Lost on the way.
            engine.repeat()
            await engine.until(lambda: engine.acknowledged.get(P) == 3)
            assert engine.usage() == [(P, 1), (P, 2), (P, 3)]

    asyncio.run(story())


def test_a_repeat_that_still_waits_is_not_acknowledged(
    engine: ScriptedEngine, tmp_path: Path
) -> None:
    async def story() -> None:
        async with running(engine, tmp_path) as host:
            engine.refuse_publish = EngineResult.BUSY
            host.carry()
            engine.close_windows(P, 2)
            await engine.until(lambda: host.spool.holds(P, 2))
            engine.repeat()
            host.ring.drain()
            assert engine.acknowledged == {}
            engine.refuse_publish = None
            await engine.until(lambda: engine.acknowledged.get(P) == 2)

    asyncio.run(story())


def test_after_a_restart_the_spool_and_the_repeats_make_a_whole(
    engine: ScriptedEngine, tmp_path: Path
) -> None:
    async def story() -> None:
        engine.refuse_publish = EngineResult.BUSY
        async with running(engine, tmp_path) as host:
            host.carry()
            engine.close_windows(P, 2)
            await engine.until(lambda: host.spool.holds(P, 2))
        engine.refuse_publish = None
        engine.waiting.clear()
        engine.closed[P] = 4
        async with running(engine, tmp_path) as host:
            engine.repeat()
            host.ring.drain()
            host.carry()
            await engine.until(lambda: engine.acknowledged.get(P) == 4)
            assert engine.usage() == [(P, 1), (P, 2), (P, 3), (P, 4)]

    asyncio.run(story())


def test_a_spool_that_was_moved_away_takes_what_the_engine_repeats_first(
    engine: ScriptedEngine, tmp_path: Path
) -> None:
    engine.closed[P], engine.acknowledged[P] = 9, 6

    async def story() -> None:
        async with running(engine, tmp_path) as host:
            host.carry()
            engine.repeat()
            await engine.until(lambda: engine.acknowledged.get(P) == 9)
            assert engine.usage() == [(P, 7), (P, 8), (P, 9)]

    asyncio.run(story())


def _tear(folder: Path) -> None:
    segment = max(folder.glob("*.spool"))
    with segment.open("r+b") as file:
        file.truncate(segment.stat().st_size - 1)


def test_a_torn_tail_is_made_good_by_the_repeat(engine: ScriptedEngine, tmp_path: Path) -> None:
    async def story() -> None:
        engine.refuse_publish = EngineResult.BUSY
        async with running(engine, tmp_path) as host:
            host.carry()
            engine.close_windows(P)
            await engine.until(lambda: host.spool.holds(P, 1))
            engine.close_windows(P)
            await engine.until(lambda: host.spool.holds(P, 2))
        _tear(tmp_path)
        engine.refuse_publish = None
        engine.waiting.clear()
        async with running(engine, tmp_path) as host:
            assert (host.spool.holds(P, 1), host.spool.holds(P, 2)) == (True, False)
            host.carry()
            engine.repeat()
            await engine.until(lambda: engine.acknowledged.get(P) == 2)
            assert engine.usage() == [(P, 1), (P, 2)]

    asyncio.run(story())


STEPS = st.lists(st.sampled_from(["close P", "close Q", "repeat", "carry", "restart"]), max_size=25)


@given(steps=STEPS, room=st.integers(1, 3))
@settings(max_examples=40, deadline=None)
def test_whatever_is_dropped_or_repeated_each_window_is_billed_once_and_in_order(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str], room: int
) -> None:
    folder = tmp_path_factory.mktemp("spool")
    engine = ScriptedEngine()

    async def part(steps: Iterator[str], *, last: bool) -> None:
        async with running(engine, folder, incoming_max=room) as host:
            engine.repeat()
            host.ring.drain()
            for step in steps:
                if step == "restart":
                    return
                if step == "carry":
                    host.carry() if host._task is None else await host.publisher.wait_idle()
                elif step == "repeat":
                    engine.repeat()
                else:
                    engine.close_windows(P if step == "close P" else Q)
                host.ring.drain()
            if last:
                if host._task is None:
                    host.carry()
                async with asyncio.timeout(PATIENCE_S):
                    while engine.acknowledged != engine.closed:
                        engine.repeat()
                        host.ring.drain()
                        await host.publisher.wait_idle()

    rest = iter(steps)
    for _ in range(steps.count("restart")):
        asyncio.run(part(rest, last=False))
        engine.waiting.clear()
    asyncio.run(part(rest, last=True))
    for partition, closed in engine.closed.items():
        billed = [sequence for found, sequence in engine.usage() if found == partition]
        assert billed == list(range(1, closed + 1))
    engine.close()


def test_an_entry_that_another_spool_published_is_noticed_and_published_anew(
    engine: ScriptedEngine, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        async with running(engine, tmp_path) as host:
            # The folder was restored from an old copy: `_usage` has later entries of this producer.
            engine.foreign.update((host.spool.producer.id, number) for number in range(100))
            host.carry()
            engine.close_windows(P, 3)
            await engine.until(lambda: engine.acknowledged.get(P) == 3)
            assert sorted(engine.usage()) == [(P, 1), (P, 2), (P, 3)]
            assert host.publisher.spools_lost == 1

    asyncio.run(story())
    assert "from another spool" in caplog.text


def test_a_refusal_that_stays_is_logged_once_by_its_cause(
    engine: ScriptedEngine, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        async with running(engine, tmp_path) as host:
            engine.refuse_publish = EngineResult.NEEDS_RELEASE
            host.carry()
            engine.close_windows(P, 1)
            await engine.until(
                lambda: [frame.kind for frame in engine.sent].count(Kind.PUBLISH) >= 3
            )
            engine.refuse_publish = None
            await engine.until(lambda: engine.acknowledged.get(P) == 1)

    asyncio.run(story())
    assert caplog.text.count("answered NEEDS_RELEASE; trying again") == 1


def _cut_last_frame(folder: Path) -> None:
    """As after a crash between a publication and its note in the spool."""
    for path in sorted(folder.glob("*.spool")):
        path.write_bytes(path.read_bytes()[:-17])


def test_an_entry_without_an_answer_may_be_a_duplicate(
    engine: ScriptedEngine, tmp_path: Path
) -> None:
    async def story() -> None:
        async with running(engine, tmp_path) as host:
            engine.close_windows(P)
            host.ring.drain()
            host.carry()
            await engine.until(lambda: engine.acknowledged.get(P) == 1)
        _cut_last_frame(tmp_path)
        async with running(engine, tmp_path) as host:
            assert len(host.spool.pending) == 1
            host.carry()
            await host.publisher.wait_idle()
            assert engine.usage() == [(P, 1)]
            assert host.publisher.spools_lost == 0

    asyncio.run(story())


def test_a_new_spool_in_a_cluster_that_has_its_name_is_noticed(
    engine: ScriptedEngine, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        for name, lost in (("spool", 1), ("spool", 0)):
            async with running(engine, tmp_path / name) as host:
                host.publisher.check_spool()
                assert host.publisher.spools_lost == lost

    asyncio.run(story())
    assert caplog.text.count("the usage spool is gone") == 1
