"""The way out of a closing topic, against a scripted engine: sealed, metered, confirmed."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dataplane.engine.frames import EngineResult, PartitionId
from dataplane.engine.partition_client import PartitionClient
from dataplane.engine.ring import Ring
from dataplane.evidence.channel import RETENTION
from dataplane.evidence.publisher import EvidencePublisher
from dataplane.evidence.spool import Spool
from dataplane.metadata.commands import encode_command
from dataplane.metadata.replica import MetadataReplica
from dataplane.wire import node_pb2 as wire
from dataplane.workflows.delete_topic import DeleteTopicWorkflow
from tests.dataplane.scripted_engine import ScriptedEngine
from tests.support.builders.commands import bootstrap, delete_topic, put_topic

TOPIC = 16
P = PartitionId(TOPIC, 2, 0)
Q = PartitionId(TOPIC, 2, 1)
MADE = (bootstrap(), put_topic())
FAST_S = 0.001
NEVER_S = 1000.0


class Host:
    """Everything a deletion needs of one process."""

    def __init__(
        self, engine: ScriptedEngine, folder: Path, tasks: asyncio.TaskGroup, retry_s: float
    ) -> None:
        self.ring = Ring(engine)
        partitions = PartitionClient(self.ring, shards=1)
        self.spool = Spool(folder)
        self.trims = Spool(folder.with_name(f"{folder.name}-retention"))
        self.failures: list[BaseException] = []
        self.replica = MetadataReplica(self.ring, self.failures.append)
        self.usage = EvidencePublisher(
            self.ring, partitions, self.spool, reading=self.replica.reading
        )
        self.retention = EvidencePublisher(
            self.ring,
            partitions,
            self.trims,
            reading=self.replica.reading,
            channel=RETENTION,
        )
        self.deletion = DeleteTopicWorkflow(
            partitions,
            self.replica,
            self.usage,
            tasks,
            retention=self.retention,
            retry_s_min=retry_s,
        )
        self.replica.handle_closing_topics(self.deletion.topic_closing)

    async def delete(self, **arguments: object) -> wire.ApplyReply:
        """What Admin.Apply does."""
        reason = str(arguments.get("force_reason", ""))
        command = delete_topic(fence=(1, 3 if reason else 2, 1), force_reason=reason)
        return (await self.replica.submit(command)).applied

    def is_gone(self) -> bool:
        """Is nothing of the topic left?"""
        with self.replica.reading() as state:
            return state.topic_numbered(TOPIC) is None


@asynccontextmanager
async def running(
    engine: ScriptedEngine,
    folder: Path,
    *,
    commands: Sequence[wire.Command] = MADE,
    retry_s: float = FAST_S,
) -> AsyncIterator[Host]:
    """A host of one process, with this metadata log behind it."""
    async with asyncio.TaskGroup() as tasks:
        host = Host(engine, folder, tasks, retry_s)
        engine.recover(encode_command(command) for command in commands)
        host.replica.start()
        host.ring.open(asyncio.get_running_loop())
        await host.replica.recovered.wait()
        host.deletion.start()
        carrier = tasks.create_task(host.usage.run())
        try:
            yield host
        finally:
            carrier.cancel()
            host.deletion.stop()
            host.ring.close()
            await asyncio.to_thread(host.replica.stop)
            host.spool.close()
            host.trims.close()
    assert host.failures == []


@pytest.fixture
def engine() -> Iterator[ScriptedEngine]:
    scripted = ScriptedEngine()
    yield scripted
    scripted.close()


def test_a_topic_is_gone_once_its_partitions_are_sealed_and_metered(
    engine: ScriptedEngine, tmp_path: Path
) -> None:
    async def story() -> None:
        async with running(engine, tmp_path) as host:
            engine.close_windows(P, 2)
            engine.appended.add(P)
            reply = await host.delete()
            assert (reply.changed, reply.deleted) == (True, False)
            await engine.until(host.is_gone)
            assert [seal for seal in engine.seals if seal[0] == Q] == [(Q, 3)]
            assert engine.usage() == [(P, 1), (P, 2), (P, 3)]
            assert engine.acknowledged[P] == 3
            await engine.until(lambda: host.deletion.closing_count() == 0)
            assert (await host.delete()).deleted
            assert P not in host.spool.sequences

    asyncio.run(story())


def test_a_topic_waits_until_its_last_window_is_published(
    engine: ScriptedEngine, tmp_path: Path
) -> None:
    async def story() -> None:
        async with running(engine, tmp_path) as host:
            engine.refuse_publish = EngineResult.STORAGE_FULL
            engine.appended.add(P)
            await host.delete()
            await engine.until(lambda: host.usage.retries > 2)
            assert not host.is_gone()
            engine.refuse_publish = None
            await engine.until(host.is_gone)
            assert engine.usage() == [(P, 1)]

    asyncio.run(story())


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (EngineResult.BUSY, "busy"),
        (EngineResult.NOT_FOUND, "not_found"),
        (EngineResult.STORAGE_FULL, "storage_full"),
        (EngineResult.DAMAGED, "damaged"),
    ],
)
def test_a_partition_that_cannot_be_sealed_is_tried_again_and_counted(
    engine: ScriptedEngine, tmp_path: Path, answer: EngineResult, reason: str
) -> None:
    async def story() -> None:
        async with running(engine, tmp_path) as host:
            engine.refuse_seal[Q] = answer
            await host.delete()
            await engine.until(lambda: host.deletion.failures_by_reason[reason] >= 3)
            assert (host.deletion.closing_count(), host.is_gone()) == (1, False)
            engine.refuse_seal.clear()
            await engine.until(host.is_gone)

    asyncio.run(story())


def test_force_gives_up_damaged_partitions_by_name_and_does_not_wait_for_its_turn(
    engine: ScriptedEngine, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        async with running(engine, tmp_path, retry_s=NEVER_S) as host:
            engine.refuse_seal[Q] = EngineResult.DAMAGED
            engine.appended.add(P)
            await host.delete()
            await engine.until(lambda: host.deletion.failures_by_reason["damaged"] == 1)
            await host.delete(force_reason="its disk is gone")
            await engine.until(lambda: host.deletion.closing_count() == 0)
            with host.replica.reading() as state:
                assert state.deleted_topics["tp_1"].given_up == (1,)
            assert engine.usage() == [(P, 1)]

    asyncio.run(story())
    assert "partitions [1] are missing" in caplog.text


def test_force_gives_up_nothing_that_may_still_answer(
    engine: ScriptedEngine, tmp_path: Path
) -> None:
    async def story() -> None:
        async with running(engine, tmp_path) as host:
            engine.refuse_seal = {P: EngineResult.DAMAGED, Q: EngineResult.BUSY}
            await host.delete(force_reason="in a hurry")
            await engine.until(lambda: host.deletion.failures_by_reason["busy"] >= 2)
            assert not host.is_gone()
            del engine.refuse_seal[Q]
            await engine.until(host.is_gone)

    asyncio.run(story())


def test_a_deletion_goes_on_after_a_restart(engine: ScriptedEngine, tmp_path: Path) -> None:
    async def story() -> None:
        commands = (*MADE, delete_topic())
        async with running(engine, tmp_path, commands=commands) as host:
            await engine.until(host.is_gone)
            assert engine.seals == [(P, 3), (Q, 3)]

    asyncio.run(story())


def test_a_window_of_before_the_restart_is_waited_for(
    engine: ScriptedEngine, tmp_path: Path
) -> None:
    async def story() -> None:
        engine.closed[P] = 2
        engine.acknowledged[P] = 1
        async with running(engine, tmp_path, commands=(*MADE, delete_topic())) as host:
            await engine.until(lambda: len(engine.seals) >= 2)
            assert not host.is_gone()
            engine.repeat()
            await engine.until(host.is_gone)
            assert engine.usage() == [(P, 2)]

    asyncio.run(story())


def test_a_topic_with_many_partitions_leaves_room_in_the_ring(
    engine: ScriptedEngine, tmp_path: Path
) -> None:
    async def story() -> None:
        commands = (bootstrap(), put_topic(partitions=1024), delete_topic())
        async with running(engine, tmp_path, commands=commands) as host:
            await engine.until(host.is_gone)
            assert len(engine.seals) == 1024

    asyncio.run(story())
