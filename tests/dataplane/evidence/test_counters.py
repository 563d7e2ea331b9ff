"""Counters from a shard's frame into `_usage`, against a scripted engine: merged, never less; told
once, whatever ends."""

import asyncio
import resource
import signal
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.engine.frames import CountedRow, EngineResult, Meter, PartitionId
from dataplane.engine.partition_client import PartitionClient
from dataplane.engine.ring import Ring
from dataplane.evidence.boot import NAME, Boot, BootDamaged
from dataplane.evidence.counters import CLOSED_TOPICS_MAX, HOUR_US, WAITING_MAX, Counters
from dataplane.evidence.publisher import EvidencePublisher
from dataplane.evidence.spool import Spool
from dataplane.metadata.state import State
from headrace.wire import usage_pb2 as usage
from tests.dataplane.scripted_engine import MINUTE_US, ScriptedEngine
from tests.support.builders.commands import Log, confirm_delete, delete_topic, put_key, put_topic
from tests.support.clients.usage_log import check_counters

DATA = Path(__file__).parents[2] / "data"
TOPIC, REVISION, PRINCIPAL = 16, 2, 16
SECOND_US = 1_000_000


def row(
    delta: int,
    cumulative: int,
    meter: Meter = Meter.EGRESS_BYTES,
    *,
    topic: int = TOPIC,
    start_us: int = 0,
) -> CountedRow:
    """What the key of these tests did with their topic."""
    return CountedRow(topic, REVISION, delta, cumulative, start_us, PRINCIPAL, meter)


class Host:
    """Ring, spool, counters and publisher of one process; everything is in one folder."""

    def __init__(
        self,
        engine: ScriptedEngine,
        folder: Path,
        *,
        boot_at: float = 1.0,
        waiting_max: int = WAITING_MAX,
    ) -> None:
        self.log = Log()
        self.log.do(put_topic())
        self.log.do(put_key())
        self.spool = Spool(folder / "spool")
        self.ring = Ring(engine)
        self.boot = Boot(folder, clock=lambda: boot_at)
        self.counters = Counters(self.ring, self.boot, node_id="nd_1", waiting_max=waiting_max)

        @contextmanager
        def reading() -> Iterator[State]:
            yield self.log.machine.state

        self.publisher = EvidencePublisher(
            self.ring,
            PartitionClient(self.ring, shards=1),
            self.spool,
            reading=reading,
            counters=self.counters,
        )
        self._task: asyncio.Task[None] | None = None

    def carry(self) -> None:
        """Let them go on."""
        self._task = asyncio.create_task(self.publisher.run())

    async def end(self) -> None:
        """End as a process does."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self.ring.close()
        self.spool.close()

    def tried(self, times: int) -> bool:
        """Whether it has failed to keep something that often."""
        return self.publisher.retries >= times


@asynccontextmanager
async def running(
    engine: ScriptedEngine, folder: Path, *, boot_at: float = 1.0, waiting_max: int = WAITING_MAX
) -> AsyncIterator[Host]:
    host = Host(engine, folder, boot_at=boot_at, waiting_max=waiting_max)
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


def test_rows_that_wait_grow_into_one_but_never_over_an_hour(
    engine: ScriptedEngine, tmp_path: Path
) -> None:
    async def story() -> None:
        async with running(engine, tmp_path) as host:
            engine.count(row(5, 5), row(1, 1, Meter.REQUESTS), end_us=HOUR_US - SECOND_US)
            engine.count(row(7, 12, start_us=HOUR_US - SECOND_US), end_us=HOUR_US)
            engine.count(row(9, 21, start_us=HOUR_US), end_us=HOUR_US + SECOND_US)
            host.ring.drain()
            assert host.counters.waiting_count() == 3
            host.carry()
            await host.publisher.wait_counted()
            found = engine.counted()
            assert [(one.meter, one.delta, one.cumulative) for one in found] == [
                ("egress_bytes", 12, 12),
                ("requests", 1, 1),
                ("egress_bytes", 9, 21),
            ]
            assert (found[0].window_start_us, found[0].window_end_us) == (0, HOUR_US)
            assert host.counters.merged == 1
            check_counters(found)

    asyncio.run(story())


def test_hours_grow_into_one_once_too_many_rows_wait(
    engine: ScriptedEngine, tmp_path: Path
) -> None:
    async def story() -> None:
        async with running(engine, tmp_path, waiting_max=3) as host:
            for hour in range(1, 6):
                start_us = (hour - 1) * HOUR_US
                engine.count(
                    row(1, hour, start_us=start_us),
                    row(2, 2 * hour, Meter.REQUESTS, start_us=start_us),
                    end_us=hour * HOUR_US,
                )
            engine.count(row(9, 9, Meter.STORED_BYTE_SECONDS), end_us=5 * HOUR_US)
            host.ring.drain()
            assert host.counters.waiting_count() == 4
            assert host.counters.hours_merged == host.counters.merged == 7
            host.carry()
            await host.publisher.wait_counted()
            found = engine.counted()
            assert [(one.meter, one.delta, one.cumulative) for one in found] == [
                ("egress_bytes", 1, 1),
                ("requests", 10, 10),
                ("egress_bytes", 4, 5),
                ("stored_byte_seconds", 9, 9),
            ]
            assert (found[2].window_start_us, found[2].window_end_us) == (HOUR_US, 5 * HOUR_US)
            check_counters(found, hours_merged=True)

    asyncio.run(story())


counted = st.tuples(
    st.integers(0, 1),
    st.sampled_from([TOPIC, 99]),
    st.sampled_from(list(Meter)),
    st.integers(1, 99),
)
steps = st.lists(
    st.one_of(counted, st.sampled_from(["kill", "refuse", "take", "spool"])), max_size=40
)


@settings(max_examples=40, deadline=None)
@given(steps)
def test_whatever_ends_or_fails_each_row_is_published_once_or_was_never_durable(
    tmp_path_factory: pytest.TempPathFactory,
    script: list[tuple[int, int, Meter, int] | str],
) -> None:
    folder = tmp_path_factory.mktemp("node")
    engine = ScriptedEngine()
    said, durable = Counter[tuple[int, str]](), Counter[tuple[int, str]]()

    async def live(todo: list[tuple[int, int, Meter, int] | str]) -> None:
        """One life of the process, up to its kill."""
        sums, open_ = Counter[tuple[int, int, Meter]](), Counter[tuple[int, str]]()
        async with running(engine, folder) as host:
            host.carry()
            while todo:
                step = todo.pop(0)
                if step == "kill":
                    return
                if step == "spool":
                    await host.publisher.wait_spooled()
                    durable.update(open_)
                    open_.clear()
                elif isinstance(step, tuple):
                    shard, topic, meter, delta = step
                    sums[shard, topic, meter] += delta
                    for counts in (said, open_):
                        counts[topic, meter.name.lower()] += delta
                    total = sums[shard, topic, meter]
                    engine.count(row(delta, total, meter, topic=topic), shard=shard)
                    host.ring.drain()
                else:
                    engine.refuse_publish = EngineResult.STORAGE_FULL if step == "refuse" else None
            engine.refuse_publish = None
            await host.publisher.wait_counted()
            durable.update(open_)

    todo = list(script)
    while todo:
        asyncio.run(live(todo))
    asyncio.run(live([]))  # A start publishes what waits.
    found = engine.counted()
    engine.close()
    check_counters(found)
    published = Counter[tuple[int, str]]()
    for one in found:
        published[one.topic, one.meter] += one.delta
    assert durable <= published <= said


def test_a_spool_that_cannot_be_written_makes_counters_coarser_and_never_less(
    engine: ScriptedEngine, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    async def story() -> None:
        async with running(engine, tmp_path) as host:
            host.carry()
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
            for window in range(1, 5):
                engine.count(row(10, 10 * window), end_us=window * SECOND_US)
                host.ring.drain()
                await engine.until(partial(host.tried, window))
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
            await host.publisher.wait_counted()
            found = engine.counted()
            check_counters(found)
            assert sum(one.delta for one in found) == 40
            assert len(found) == 2  # The first was on its way, the others grew into one.
            assert caplog.text.count("usage cannot be spooled and waits") == 1

    try:
        asyncio.run(story())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_the_last_record_of_a_shard_says_so_and_waits_for_the_next_start(
    engine: ScriptedEngine, tmp_path: Path
) -> None:
    async def story() -> None:
        async with running(engine, tmp_path) as host:
            host.carry()
            engine.count(row(5, 5), shard=0)
            host.ring.drain()
            await host.publisher.wait_counted()
            host.publisher.stop_publishing()
            engine.count(row(3, 3), shard=1)
            engine.count(row(4, 7), shard=1, final=True)
            engine.count(shard=0, final=True)  # Has told everything.
            engine.count(shard=2, final=True)  # Has nothing to tell.
            host.ring.drain()
            await host.publisher.wait_spooled()
            assert len(engine.counted()) == 1
        async with running(engine, tmp_path, boot_at=0.0) as host:
            host.carry()
            await host.publisher.wait_idle()
            assert host.boot.number > 1
            found = engine.counted()
            check_counters(found)
            last = {one.shard: one for one in found}
            assert {
                shard: (one.final, one.delta, one.cumulative, one.topic_id)
                for shard, one in last.items()
            } == {0: (True, 0, 5, "tp_1"), 1: (True, 7, 7, "tp_1")}

    asyncio.run(story())


def test_a_topic_that_went_is_called_as_it_was_and_topic_0_is_unattributed(
    engine: ScriptedEngine, tmp_path: Path
) -> None:
    async def story() -> None:
        async with running(engine, tmp_path) as host:
            state = host.log.machine.state
            op = host.log.do(delete_topic()).op
            topic = state.topic_numbered(TOPIC)
            assert topic is not None
            host.counters.remember(topic)
            host.log.do(confirm_delete(TOPIC, op))
            assert state.topic_numbered(TOPIC) is None
            engine.count(row(3, 3), row(8, 8, Meter.REQUESTS, topic=0))
            host.ring.drain()
            host.carry()
            await host.publisher.wait_counted()
            gone, nobodys = engine.counted()
            assert (gone.topic_id, gone.topic_name, gone.organization_id) == (
                "tp_1",
                "default/clicks",
                "org_1",
            )
            assert (nobodys.topic_id, nobodys.topic_name) == ("", "unattributed")
            for _ in range(2 * CLOSED_TOPICS_MAX):
                host.counters.remember(topic)

    asyncio.run(story())


def test_the_layout_of_a_counter_is_frozen(engine: ScriptedEngine, tmp_path: Path) -> None:
    host = Host(engine, tmp_path, boot_at=1_800_000_000.0)
    start_us = 1_800_000_000 * SECOND_US
    engine.count(row(5, 50, start_us=start_us), end_us=start_us + 10 * SECOND_US, shard=2)
    host.ring.drain()
    (record,) = host.counters.choose(host.log.machine.state)
    assert record.value == (DATA / "usage_counter_named_v1.bin").read_bytes()
    counter = usage.UsageRecord.FromString(record.value[1:]).counter
    assert (counter.principal_id, counter.topic_id, counter.project_id) == (
        "key_1",
        "tp_1",
        "prj_1",
    )
    host.spool.close()


# ---- lives ----


def test_a_life_is_above_every_one_that_told_something(tmp_path: Path) -> None:
    numbers = []
    for clock in (100.0, 100.0, 50.0, 200.0):
        boot = Boot(tmp_path, clock=partial(float, clock))
        boot.keep()
        boot.keep()
        numbers.append(boot.number)
    assert numbers == [100, 101, 102, 200]
    (tmp_path / NAME).unlink()
    assert Boot(tmp_path, clock=lambda: 300.0).number == 300


def test_a_life_that_told_nothing_leaves_no_trace(tmp_path: Path) -> None:
    assert [Boot(tmp_path, clock=lambda: 7.0).number for _ in range(2)] == [7, 7]
    assert list(tmp_path.iterdir()) == []


def test_a_life_that_is_no_number_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text("many")
    with pytest.raises(BootDamaged, match="holds no number"):
        Boot(tmp_path)


def test_a_window_of_a_partition_and_a_counter_go_side_by_side(
    engine: ScriptedEngine, tmp_path: Path
) -> None:
    async def story() -> None:
        partition = PartitionId(TOPIC, REVISION, 0)
        async with running(engine, tmp_path) as host:
            host.carry()
            engine.close_windows(partition, 2)
            engine.count(row(3, 3), end_us=MINUTE_US)
            await engine.until(lambda: engine.acknowledged.get(partition) == 2)
            await host.publisher.wait_counted()
            assert len(engine.usage()) == 3
            # Nothing is acknowledged that the engine does not know.
            assert set(engine.acknowledged) == {partition}

    asyncio.run(story())
