"""The engine's life: who may open a data directory, start, stop, restart; the host's frames."""

import socket
import struct
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import grpc
import pytest

from native.engine import FRAME_SIZE_MAX, Engine, EngineError, EngineLimits, Frame
from tests.support.builders.seeds import CLUSTER_ID
from tests.support.clients.grpc_client import (
    GRPC_OPTIONS,
    ROWS,
    bearer,
    metric,
    produce,
    raw,
    refusal,
    request,
)
from tests.support.processes import engine_host
from tests.support.processes.engine_host import Host, grant_row, topic_row


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


@pytest.mark.parametrize("shards", [1, 3])
def test_tables_are_answered_as_soon_as_every_shard_has_them(tmp_path: Path, shards: int) -> None:
    with Host(engine_host.config(tmp_path / "node", shards=shards)) as host:
        began = time.monotonic()
        for partitions in range(1, 41):
            host.submit(topic_row(20, partitions=partitions))
        # A shard that slept over its answer would wake after 100 ms.
        assert time.monotonic() - began < 40 * 0.05


def test_a_directory_of_another_cluster_is_refused_by_name(tmp_path: Path) -> None:
    Engine(engine_host.config(tmp_path / "node")).close()
    with pytest.raises(EngineError) as failure:
        Engine(engine_host.config(tmp_path / "node", cluster_id="cl_other"))
    assert failure.value.name == "IDENTITY_OTHER_CLUSTER"
    assert failure.value.detail == CLUSTER_ID


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
        host.engine.send([Frame(engine_host.SEND_STATUS, slot=3, slot_tag=99)])
        host.request(engine_host.DESCRIBE, engine_host.PARTITION_ID.pack(5, 1, 0, 0))
        assert 'headrace_late_answers_total{shard="0",from="host"} 1' in host.engine.metrics()


def test_a_snapshot_above_one_frame_ends_the_node_by_name(tmp_path: Path) -> None:
    host = Host(engine_host.config(tmp_path / "node", shards=2))
    assert host.ready.wait(engine_host.WAIT_S)
    large = Frame(engine_host.SNAPSHOT_IS, arg0=1, body=bytes(FRAME_SIZE_MAX))
    # Nothing is left to be sent again: the queue goes on.
    assert host.engine.send([Frame(engine_host.HOST_BEAT), large]) == 2
    host.wait_until(lambda: bool(host.stopped))
    assert not host.close()


def test_a_message_above_one_frame_ends_only_its_call(tmp_path: Path) -> None:
    with (
        Host(engine_host.config(tmp_path / "node")) as host,
        grpc.insecure_channel(host.address) as channel,
    ):
        host.submit(*ROWS)
        call = raw(channel, "/headrace.test.Echo/Never").future(b"", metadata=bearer())
        host.wait_until(lambda: bool(host.opened))
        key = host.opened[-1][0]
        large = Frame(engine_host.SEND_MESSAGE, *key, body=bytes(FRAME_SIZE_MAX))
        assert host.engine.send([large, Frame(engine_host.HOST_BEAT)]) == 2
        with pytest.raises(grpc.RpcError) as failure:
            call.result(engine_host.WAIT_S)
        assert failure.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        assert raw(channel, "/headrace.test.Echo/Unary")(b"x", metadata=bearer()) == b"x"


def test_the_size_of_the_metadata_snapshot_and_its_limit_are_metrics(tmp_path: Path) -> None:
    settings = engine_host.config(tmp_path / "node")
    rows = [topic_row(number) for number in range(20, 40)]
    with Host(settings) as host:
        for _ in range(1030):
            host.submit(rows[0])
        while not metric(host, "headrace_metadata_snapshot_bytes"):
            host.submit(rows[0])
        assert metric(host, "headrace_metadata_snapshot_bytes") >= 1000 * len(rows[0])
        assert metric(host, "headrace_metadata_snapshot_limit_bytes") == FRAME_SIZE_MAX - 32
        assert metric(host, "headrace_metadata_snapshots_refused_total") == 0


def test_one_metric_is_summed_over_the_shards_without_the_text(tmp_path: Path) -> None:
    with Host(engine_host.config(tmp_path / "node", shards=2)) as host:
        host.submit(topic_row(20, partitions=6))
        for name in ("headrace_groups_live", "headrace_connections_opened_total"):
            assert host.engine.metric_total(name) == metric(host, name)
        assert host.engine.metric_total("headrace_storage_full") == 0
        # Of one that has further labels there is no one sum; of an unknown one there is none.
        for name in ("headrace_connections_ended_total", "headrace_groups", ""):
            with pytest.raises(KeyError):
                host.engine.metric_total(name)


def test_an_empty_snapshot_is_refused_and_asked_for_again_after_a_while(tmp_path: Path) -> None:
    retry_ms = 300
    limits = EngineLimits(snapshot_retry_ms=retry_ms)
    settings = engine_host.config(tmp_path / "node", limits=limits)
    with Host(settings) as host:
        host.snapshots_empty = True
        for _ in range(1030):
            host.submit(topic_row(20, partitions=6))
        host.wait_until(lambda: len(host.snapshots_asked) >= 3)
        asked = host.snapshots_asked
        assert min(b - a for a, b in pairwise(asked)) >= retry_ms / 1000 * 0.9
        assert metric(host, "headrace_metadata_snapshots_refused_total") >= 2
        host.snapshots_empty = False
        host.wait_until(lambda: metric(host, "headrace_metadata_snapshot_bytes") > 0)
    # Nothing was wiped by it.
    with Host(settings) as host:
        body = engine_host.PARTITION_ID.pack(20, 1, 5, 0)
        assert host.request(engine_host.DESCRIBE, body)[0] == 0


def test_a_confirmed_clock_reaches_every_shard(tmp_path: Path) -> None:
    with Host(engine_host.config(tmp_path / "node", shards=3)) as host:
        before = metric(host, "headrace_host_frames_total", 'direction="in"')
        host.beating = False
        assert host.engine.send([Frame(engine_host.CLOCK_CONFIRM)]) == 1
        while metric(host, "headrace_host_frames_total", 'direction="in"') < before + 3:
            assert not host.stopped
        assert metric(host, "headrace_clock_uncertain") == 0


def test_a_silent_host_turns_health_to_not_serving_and_data_is_served_on(tmp_path: Path) -> None:
    with (
        Host(engine_host.config(tmp_path / "node", limits=EngineLimits(host_beat_ms=500))) as host,
        grpc.insecure_channel(host.address) as channel,
    ):
        host.submit(*ROWS)
        health = raw(channel, "/grpc.health.v1.Health/Check")
        assert health(b"", timeout=engine_host.WAIT_S) == b"\x08\x01"
        host.beating = False
        ended_at = time.monotonic() + engine_host.WAIT_S
        while health(b"", timeout=engine_host.WAIT_S) != b"\x08\x02":
            assert time.monotonic() < ended_at
        assert produce(channel, request()).record_count == 1
        host.beating = True
        while health(b"", timeout=engine_host.WAIT_S) != b"\x08\x01":
            assert time.monotonic() < ended_at


def test_a_stuck_host_refuses_new_calls_by_name_and_finishes_old_ones(tmp_path: Path) -> None:
    with (
        Host(engine_host.config(tmp_path / "node")) as host,
        grpc.insecure_channel(host.address, GRPC_OPTIONS) as channel,
        ThreadPoolExecutor(1) as pool,
    ):
        host.submit(*ROWS)
        host.apply_gate.clear()
        submitted = pool.submit(host.submit, topic_row(50))
        assert host.applying.wait(engine_host.WAIT_S)
        echo = raw(channel, "/headrace.test.Echo/Unary")
        large = bytes(4_000_000)
        calls = [echo.future(large, metadata=bearer()) for _ in range(4)]
        # What they say fills the ring up to what is kept for calls in progress. A small call that
        # comes before the last of it is let in, waits for the host and times out: ask again.
        refused_code = ""
        while refused_code != "HOST_BUSY":
            assert not host.stopped
            with pytest.raises(grpc.RpcError) as failure:
                echo(b"small", metadata=bearer(), timeout=1)
            if failure.value.code() != grpc.StatusCode.DEADLINE_EXCEEDED:
                refused_code = refusal(failure)[1].code
        host.apply_gate.set()
        submitted.result(engine_host.WAIT_S)
        assert [len(call.result(engine_host.WAIT_S)) for call in calls] == [4_000_000] * 4


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
