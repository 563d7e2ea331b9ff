"""The engine's life: who may open a data directory, start, stop, restart; the host's frames."""

import socket
import struct
from pathlib import Path

import grpc
import pytest

from native.engine import Engine, EngineError, Frame
from tests.support import engine_host
from tests.support.engine_host import Host, grant_row, topic_row


def test_an_engine_starts_recovers_nothing_and_stops(tmp_path: Path) -> None:
    host = Host(engine_host.config(tmp_path / "node"))
    assert host.ready.wait(engine_host.WAIT_S)
    assert host.port > 0
    assert host.close()
    assert (tmp_path / "node" / "node.identity").stat().st_size == 256


@pytest.mark.parametrize("shards", [1, 2, 3])
def test_tables_survive_a_restart_on_every_shard_count(tmp_path: Path, shards: int) -> None:
    settings = engine_host.config(tmp_path / "node", shards=shards)
    with Host(settings) as host:
        host.submit(topic_row(20, partitions=6), grant_row("k" * 10, "s" * 43))
    with Host(settings) as host:
        for partition in range(6):
            body = engine_host.PARTITION_ID.pack(20, 1, partition, 0)
            result, state = host.request(engine_host.DESCRIBE, body)
            assert result == 0
            assert struct.unpack_from("<QQQ", state) == (0, 0, 0)


def test_a_directory_of_another_cluster_is_refused_by_name(tmp_path: Path) -> None:
    Engine(engine_host.config(tmp_path / "node")).close()
    with pytest.raises(EngineError) as failure:
        Engine(engine_host.config(tmp_path / "node", cluster_id="cl_other"))
    assert failure.value.name == "IDENTITY_OTHER_CLUSTER"
    assert failure.value.detail == engine_host.CLUSTER_ID


def test_a_directory_of_another_node_or_shard_count_is_refused(tmp_path: Path) -> None:
    Engine(engine_host.config(tmp_path / "node")).close()
    with pytest.raises(EngineError, match="IDENTITY_OTHER_NODE"):
        Engine(engine_host.config(tmp_path / "node", node_id="nd_other"))
    with pytest.raises(EngineError, match="IDENTITY_SHARDS"):
        Engine(engine_host.config(tmp_path / "node", shards=2))


def test_a_second_engine_on_the_same_directory_is_refused(tmp_path: Path) -> None:
    with (
        Engine(engine_host.config(tmp_path / "node")),
        pytest.raises(EngineError, match="DIRECTORY_LOCKED"),
    ):
        Engine(engine_host.config(tmp_path / "node"))


def test_a_damaged_identity_is_refused_and_left_alone(tmp_path: Path) -> None:
    Engine(engine_host.config(tmp_path / "node")).close()
    identity = tmp_path / "node" / "node.identity"
    damaged = bytearray(identity.read_bytes())
    damaged[50] ^= 1
    identity.write_bytes(damaged)
    with pytest.raises(EngineError, match="IDENTITY_DAMAGED"):
        Engine(engine_host.config(tmp_path / "node"))
    assert identity.read_bytes() == damaged


def test_a_taken_port_is_refused_by_name(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with (
            Engine(engine_host.config(tmp_path / "node", port=port)) as engine,
            pytest.raises(EngineError, match="ADDRESS_IN_USE"),
        ):
            engine.start()


@pytest.mark.parametrize(
    "changes",
    [
        {"shards": 0},
        {"shards": 65},
        {"shards": 64, "shards_pinned": True},
        {"metering_window_s": 7},
        {"cluster_id": ""},
        {"host": ""},
    ],
)
def test_a_configuration_out_of_range_is_refused(
    tmp_path: Path, changes: dict[str, object]
) -> None:
    with pytest.raises(EngineError, match="CONFIG_INVALID"):
        Engine(engine_host.config(tmp_path / "node", **changes))


def test_a_malformed_frame_of_the_host_is_refused(tmp_path: Path) -> None:
    with Host(engine_host.config(tmp_path / "node")) as host:
        with pytest.raises(EngineError, match="INVALID"):
            host.engine.send([Frame(7)])
        with pytest.raises(EngineError, match="INVALID"):
            host.engine.send([Frame(engine_host.DESCRIBE, body=b"short")])
        with pytest.raises(EngineError, match="INVALID"):
            host.engine.send([Frame(engine_host.SEND_STATUS, shard=9)])


def test_a_late_answer_of_the_host_is_dropped_and_counted(tmp_path: Path) -> None:
    with Host(engine_host.config(tmp_path / "node")) as host:
        host.engine.send([Frame(engine_host.SEND_STATUS, slot=3, generation=99)])
        host.request(engine_host.DESCRIBE, engine_host.PARTITION_ID.pack(5, 1, 0, 0))
        assert 'headrace_late_answers_total{shard="0",from="host"} 1' in host.engine.metrics()


def test_a_partition_that_is_not_there_is_answered_not_found(tmp_path: Path) -> None:
    with Host(engine_host.config(tmp_path / "node", shards=2)) as host:
        for partition in range(4):
            body = engine_host.PARTITION_ID.pack(77, 1, partition, 0)
            assert host.request(engine_host.DESCRIBE, body)[0] == 1


def test_stopping_says_goodbye_and_ends_cleanly_with_a_client_connected(tmp_path: Path) -> None:
    host = Host(engine_host.config(tmp_path / "node", shards=2))
    assert host.ready.wait(engine_host.WAIT_S)
    with grpc.insecure_channel(host.address) as channel:
        grpc.channel_ready_future(channel).result(engine_host.WAIT_S)
        assert host.close()
