"""The life of a topic through a whole engine: real files, real threads, several shards."""

from __future__ import annotations

import struct
from pathlib import Path

import grpc
import pytest

from tests.support.builders.storage import client_part
from tests.support.clients.grpc_client import (
    EDITOR,
    GRPC_OPTIONS,
    SECRET,
    STRANGER,
    bearer,
    metric,
    produce,
    refusal,
    request,
)
from tests.support.processes import engine_host
from tests.support.processes.engine_host import Host, grant_row, topic_row
from tests.support.processes.platform import wait_until

CLOSING, RECREATED = 2, 4
OK, NOT_FOUND, REMADE, INVALID, CLOSED = 0, 1, 2, 7, 11


def part_id(topic: int, partition: int) -> bytes:
    return engine_host.PARTITION_ID.pack(topic, 1, partition, 0)


def publish(host: Host, topic: int, partition: int = 0) -> int:
    return host.request(engine_host.PUBLISH, part_id(topic, partition) + client_part(1))[0]


def seal(host: Host, topic: int, partition: int, intent: int = 5) -> tuple[int, bytes]:
    return host.request(engine_host.SEAL, part_id(topic, partition) + struct.pack("<Q", intent))


def told(host: Host, public_id: str) -> str:
    """The code that a produce to topic 20, by a handle of its first life, is refused with."""
    options = [*GRPC_OPTIONS, ("grpc.use_local_subchannel_pool", 1)]
    with (
        grpc.insecure_channel(host.address, options) as channel,
        pytest.raises(grpc.RpcError) as failure,
    ):
        produce(channel, request(), metadata=bearer(public_id))
    return refusal(failure)[1].code


def folders(data: Path, topic: int) -> list[Path]:
    """Not a walk: it would step into folders on their way out."""
    return sorted(data.glob(f"node/layout-*/shard-*/topics/{topic:016x}-*"))


@pytest.mark.parametrize("shards", [1, 3])
def test_a_topic_is_sealed_then_gone_with_its_files(tmp_path: Path, shards: int) -> None:
    settings = engine_host.config(tmp_path / "node", shards=shards)
    with Host(settings) as host:
        host.submit(topic_row(20, partitions=6), topic_row(21))
        assert {publish(host, 20, partition) for partition in range(5)} == {OK}
        assert publish(host, 21) == OK
        assert seal(host, 20, 5)[0] == INVALID  # nothing keeps operations from it yet
        host.submit(topic_row(20, partitions=6, flags=CLOSING))
        assert publish(host, 20) == CLOSED
        sealed = [seal(host, 20, partition) for partition in range(6)]
        assert [result for result, _ in sealed] == [OK] * 6
        ends = [struct.unpack("<QQQQQ", body)[:2] for _, body in sealed]
        assert ends == [(1, 1)] * 5 + [(0, 0)]
        wait_until(lambda: len(folders(tmp_path, 20)) == 5, "five folders")
        host.submit(topic_row(20, gone=True))
        assert publish(host, 20) == NOT_FOUND
        wait_until(lambda: folders(tmp_path, 20) == [], "no folder")
        assert publish(host, 21) == OK
    with Host(settings) as host:
        assert publish(host, 20) == NOT_FOUND
        assert publish(host, 21) == OK
        assert folders(tmp_path, 20) == []


def test_files_that_cannot_go_are_seen_and_go_later(tmp_path: Path) -> None:
    settings = engine_host.config(tmp_path / "node")
    with Host(settings) as host:
        host.submit(topic_row(20), topic_row(21))
        assert publish(host, 20) == OK
        wait_until(lambda: len(folders(tmp_path, 20)) == 1, "a folder")
        (obstacle,) = [folder / "in-the-way" for folder in folders(tmp_path, 20)]
        obstacle.mkdir()
        (obstacle / "file").touch()
        host.submit(topic_row(20, gone=True))
        failures = "headrace_partitions_removing_failures_total"
        wait_until(lambda: metric(host, failures) >= 1, "a failure")
        assert metric(host, "headrace_partitions_removing") == 1
        assert publish(host, 21) == OK
    with Host(settings) as host:
        assert metric(host, "headrace_partitions_removing") == 1
        assert publish(host, 20) == NOT_FOUND
        (obstacle / "file").unlink()
        wait_until(lambda: metric(host, "headrace_partitions_removing") == 0, "the end of it")
        assert folders(tmp_path, 20) == []


def test_more_partitions_serve_at_once_and_fewer_are_refused(tmp_path: Path) -> None:
    settings = engine_host.config(tmp_path / "node", shards=3)
    with Host(settings) as host:
        host.submit(topic_row(20, partitions=2))
        assert publish(host, 20, 5) == NOT_FOUND
        host.submit(topic_row(20, partitions=6))
        assert {publish(host, 20, partition) for partition in range(6)} == {OK}
    with Host(settings) as host:
        assert {publish(host, 20, partition) for partition in range(6)} == {OK}
        host.begin(engine_host.SUBMIT, topic_row(20, partitions=5))
        host.wait_until(lambda: bool(host.stopped))


def test_a_handle_of_an_earlier_life_of_a_name_is_told_so(tmp_path: Path) -> None:
    with Host(engine_host.config(tmp_path / "node")) as host:
        host.submit(topic_row(20, revision=7), grant_row(EDITOR, SECRET))
        host.submit(grant_row(STRANGER, SECRET, organization=2), topic_row(20, gone=True))
        assert told(host, EDITOR) == "TOPIC_NOT_FOUND"
        host.submit(topic_row(21), topic_row(20, gone=True, flags=RECREATED))
        assert told(host, EDITOR) == "TOPIC_RECREATED"
        assert publish(host, 20) == REMADE
        assert told(host, STRANGER) == "TOPIC_NOT_FOUND"
        host.submit(topic_row(20, gone=True))
        assert told(host, EDITOR) == "TOPIC_NOT_FOUND"


def test_only_so_many_gone_topics_are_remembered(tmp_path: Path) -> None:
    with Host(engine_host.config(tmp_path / "node")) as host:
        rows = [topic_row(20 + index, gone=True, flags=RECREATED) for index in range(1025)]
        host.submit(*rows)
        assert [publish(host, 20), publish(host, 21), publish(host, 1044)] == [
            NOT_FOUND,
            REMADE,
            REMADE,
        ]
