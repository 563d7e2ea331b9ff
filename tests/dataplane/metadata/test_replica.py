"""The metadata replica against a scripted engine."""

import asyncio
from collections.abc import Iterator

import pytest

from dataplane.engine.frames import Kind
from dataplane.engine.ring import Ring
from dataplane.metadata import snapshot
from dataplane.metadata.commands import encode_command
from dataplane.metadata.replica import MetadataReplica
from native.engine import Frame
from tests.dataplane.scripted_engine import ScriptedEngine
from tests.support.builders.commands import Log, bootstrap, delete_topic, put_topic


@pytest.fixture
def engine() -> Iterator[ScriptedEngine]:
    scripted = ScriptedEngine()
    yield scripted
    scripted.close()


def _apply(op: int) -> Frame:
    command = bootstrap() if op == 1 else put_topic(f"tp_{op}", topic=f"topic-{op}")
    return Frame(Kind.METADATA_APPLY, arg0=op, body=encode_command(command))


async def _answered(ring: Ring, engine: ScriptedEngine, *frames: Frame) -> list[Frame]:
    """The host's answers to these frames."""
    before = len(engine.sent)
    engine.post(*frames)
    ring.drain()
    await engine.until(lambda: len(engine.sent) == before + len(frames))
    return engine.sent[before:]


def test_a_snapshot_that_fits_no_frame_is_not_sent_and_everything_else_goes_on(
    engine: ScriptedEngine, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        ring = Ring(engine)
        failures: list[BaseException] = []
        replica = MetadataReplica(ring, failures.append, snapshot_bytes_max=100)
        replica.start()
        ring.open(asyncio.get_running_loop())
        ask = Frame(Kind.METADATA_SNAPSHOT, arg0=1)
        frames = await _answered(
            ring, engine, Frame(Kind.METADATA_RESTORE), _apply(1), ask, _apply(2)
        )
        assert [(frame.kind, frame.arg0) for frame in frames[1:]] == [
            (Kind.METADATA_APPLIED, 1),
            (Kind.METADATA_SNAPSHOT_IS, 1),
            (Kind.METADATA_APPLIED, 2),
        ]
        assert frames[2].body == b""
        assert (failures, replica.snapshots_refused) == ([], 1)
        expected = f"METADATA_SNAPSHOT_LARGE: {replica.snapshot_bytes} bytes, 100 fit"
        assert replica.warning().startswith(expected)
        assert expected in caplog.text
        ring.close()
        replica.stop()

    asyncio.run(story())


def test_a_snapshot_near_the_limit_is_given_with_a_warning(engine: ScriptedEngine) -> None:
    async def story() -> None:
        ring = Ring(engine)
        size = len(Log().machine.snapshot())
        replica = MetadataReplica(ring, lambda error: None, snapshot_bytes_max=size)
        replica.start()
        ring.open(asyncio.get_running_loop())
        ask = Frame(Kind.METADATA_SNAPSHOT, arg0=1)
        frames = await _answered(ring, engine, Frame(Kind.METADATA_RESTORE), _apply(1), ask)
        assert len(frames[-1].body) == size
        assert replica.warning().startswith(f"METADATA_SNAPSHOT_LARGE: {size} bytes, {size} fit")
        ring.close()
        replica.stop()

    asyncio.run(story())


def test_a_snapshot_that_fits_is_given_and_warns_of_nothing(engine: ScriptedEngine) -> None:
    async def story() -> None:
        ring = Ring(engine)
        replica = MetadataReplica(ring, lambda error: None)
        replica.start()
        ring.open(asyncio.get_running_loop())
        ask = Frame(Kind.METADATA_SNAPSHOT, arg0=2)
        frames = await _answered(
            ring, engine, Frame(Kind.METADATA_RESTORE), _apply(1), _apply(2), ask
        )
        assert snapshot.decode(frames[-1].body).op == 2
        assert (replica.snapshot_bytes, replica.warning()) == (len(frames[-1].body), "")
        ring.close()
        replica.stop()

    asyncio.run(story())


def test_what_should_follow_an_op_and_fails_ends_the_node(engine: ScriptedEngine) -> None:
    async def story() -> None:
        ring = Ring(engine)
        failures: list[BaseException] = []
        replica = MetadataReplica(ring, failures.append)

        def defect(topic: int) -> None:
            raise KeyError(topic)

        replica.handle_closing_topics(defect)
        replica.start()
        ring.open(asyncio.get_running_loop())
        delete = Frame(Kind.METADATA_APPLY, arg0=3, body=encode_command(delete_topic("tp_2")))
        await _answered(ring, engine, Frame(Kind.METADATA_RESTORE), _apply(1), _apply(2), delete)
        await engine.until(lambda: bool(failures))
        assert isinstance(failures[0], KeyError)
        ring.close()
        replica.stop()

    asyncio.run(story())
