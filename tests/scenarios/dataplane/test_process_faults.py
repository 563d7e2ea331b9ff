"""Bad days of a node's process: taken ports, few descriptors, ends under load, clocks that jump.

Rows R5, L5 and T1 of the fault matrix for one node, and C2 of the protocol, with real processes.
Kills at any moment are in test_main_path.py and test_crash_points.py.
"""

import contextlib
import re
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path

import grpc
import pytest

from dataplane.wire import node_pb2, node_pb2_grpc
from headrace import codec
from tests.support.builders.node_objects import EDITOR, furnish
from tests.support.builders.seeds import seed_of
from tests.support.processes.faults import Faults
from tests.support.processes.node_process import PROGRAM, NodeProcess
from tests.support.processes.platform import Platform

pytestmark = [pytest.mark.check, pytest.mark.alone]

DAY_S = 86_400
DESCRIPTORS = 256


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that somebody listens on."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        yield int(holder.getsockname()[1])


@pytest.fixture
def faults(tmp_path: Path) -> Iterator[Faults]:
    made = Faults(tmp_path)
    yield made
    made.close()


# ---- ports ----


def test_a_node_whose_grpc_port_is_taken_says_so_and_ends(tmp_path: Path, taken: int) -> None:
    node = NodeProcess(tmp_path)
    node.grpc_port = taken
    said = node.refused()
    assert f"ADDRESS_IN_USE: the address is taken: choose another port (127.0.0.1:{taken})" in said
    node.grpc_port = 0
    with node:
        furnish(node, "later")


def test_a_node_whose_http_port_is_taken_says_so_and_ends(tmp_path: Path, taken: int) -> None:
    node = NodeProcess(tmp_path, exchange=("http_port = 0", f"http_port = {taken}"))
    said = node.refused()
    assert f"cannot listen on 127.0.0.1:{taken} (node.http_port): " in said


def test_a_node_told_an_address_that_is_not_this_machines_says_so(tmp_path: Path) -> None:
    elsewhere = ("http_port = 0", 'http_port = 0\nhost = "192.0.2.1"')
    said = NodeProcess(tmp_path, exchange=elsewhere).refused()
    assert "ADDRESS_UNKNOWN: this machine has no such address" in said


def test_up_refuses_a_taken_port_by_its_number_and_leaves_nothing(
    tmp_path: Path, taken: int
) -> None:
    platform = Platform(tmp_path)
    done = platform.cli("up", "--dir", str(platform.data), "--port", str(taken), check=False)
    assert done.returncode == 5
    said = done.stderr.decode()
    assert "PORT_IN_USE" in said
    assert f"Port {taken} is in use" in said
    assert "headrace up --port 0" in said
    assert "Traceback" not in said
    assert not platform.data.exists()


# ---- L5, R5: few descriptors ----


def limited(soft: int, hard: int) -> Sequence[str]:
    """A node under RLIMIT_NOFILE."""
    return ("prlimit", f"--nofile={soft}:{hard}", "--", *PROGRAM)


def descriptors(node: NodeProcess) -> int:
    """How many the node has open."""
    return len(list(Path(f"/proc/{node.pid}/fd").iterdir()))


def metric(node: NodeProcess, name: str) -> int:
    """The sum over shards and labels of one metric."""
    lines = re.findall(rf"^{name}(?:{{.*}})? (\d+)$", node.http("/metrics")[1], re.MULTILINE)
    assert lines, name
    return sum(map(int, lines))


@pytest.mark.parametrize("shards", [1, 3])
def test_connections_never_take_the_descriptors_that_segments_need(
    tmp_path: Path, shards: int
) -> None:
    program = limited(DESCRIPTORS, DESCRIPTORS)
    with NodeProcess(tmp_path, program=program, shards=shards) as node:
        furnish(node, "first")
        client = node.client(EDITOR)
        with contextlib.ExitStack() as held:
            for _ in range(2 * DESCRIPTORS):
                held.enter_context(socket.create_connection(("127.0.0.1", node.grpc_port)))
            counted = "headrace_connections_(?:refused|ended)_total"
            node.wait_until(lambda: metric(node, counted) >= DESCRIPTORS)
            assert descriptors(node) < DESCRIPTORS
            # More segments than may be open, all of them made while connections press.
            names = [f"topic-{index}" for index in range(40)]
            furnish(node, *names)
            for name in names:
                topic = client.topic(name)
                for partition in range(2):
                    assert client.produce(topic, partition, [name.encode()]).persisted == 1
            assert descriptors(node) < DESCRIPTORS
        for name in names:
            assert client.values(client.topic(name), 0) == [name.encode()]
        assert node.terminate() == 0


def test_too_few_descriptors_are_refused_with_how_many_it_takes(tmp_path: Path) -> None:
    said = NodeProcess(tmp_path, program=limited(128, 128)).refused()
    assert "DESCRIPTORS_FEW: the process may open too few files: raise the limit" in said
    assert re.search(r"the limit is 128, 1 shards take at least \d+", said)


def test_a_soft_limit_is_raised_to_the_hard_one(tmp_path: Path) -> None:
    with NodeProcess(tmp_path, program=limited(128, 1024)) as node:
        limits = Path(f"/proc/{node.pid}/limits").read_text()
        assert re.search(r"Max open files +1024 +1024", limits)


def test_memory_that_the_system_does_not_give_is_refused_with_how_much_it_takes(
    tmp_path: Path,
) -> None:
    program = ("prlimit", f"--as={300 << 20}", "--", *PROGRAM)
    said = NodeProcess(tmp_path, program=program).refused()
    assert "MEMORY_REFUSED: the system does not give the node that much memory" in said
    assert re.search(r"\(shard 0: \d+ MiB\)", said)


# ---- SIGTERM under load ----


class Producing(threading.Thread):
    """Batch after batch to one partition until it is refused; what was acknowledged."""

    def __init__(self, node: NodeProcess, partition: int) -> None:
        super().__init__(daemon=True)
        self.client = node.client(EDITOR)
        self.topic = self.client.topic("loaded")
        self.partition = partition
        self.acked: list[bytes] = []
        self.failed: BaseException | None = None

    def run(self) -> None:
        try:
            while True:
                value = b"%d/%d" % (self.partition, len(self.acked))
                reply = self.client.produce(
                    self.topic, self.partition, [value], sequence=len(self.acked)
                )
                assert reply.base_offset == len(self.acked)
                self.acked.append(value)
        except BaseException as error:  # looked at by the test
            self.failed = error


@pytest.mark.parametrize("shards", [1, 3])
def test_sigterm_in_the_middle_of_producing_loses_nothing_and_ends_in_time(
    tmp_path: Path, shards: int
) -> None:
    with NodeProcess(tmp_path, shards=shards) as node:
        furnish(node, "loaded")
        producers = [Producing(node, partition) for partition in range(2)]
        for producer in producers:
            producer.start()
        node.wait_until(lambda: all(len(one.acked) > 50 for one in producers))
        began = time.monotonic()
        node.begin_termination()
        assert node.ended() == (0, b"")
        assert time.monotonic() - began < 10
        for producer in producers:
            producer.join(120)
            # Told to go elsewhere, or cut off while idle: never left without an answer.
            assert isinstance(producer.failed, grpc.RpcError)
            assert producer.failed.code() is grpc.StatusCode.UNAVAILABLE
        node.start()
        client = node.client(EDITOR)
        for producer in producers:
            stored = client.values(producer.topic, producer.partition)
            assert stored[: len(producer.acked)] == producer.acked
            assert len(stored) <= len(producer.acked) + 1


def test_sigterm_again_and_again_changes_nothing_about_how_a_node_ends(tmp_path: Path) -> None:
    with NodeProcess(tmp_path) as node:
        assert node.terminate_again_and_again() == 0


# ---- T1, C2: the wall clock ----


def times(node: NodeProcess, topic: str) -> list[int]:
    """Append times of a partition's batches, us."""
    client = node.client(EDITOR)
    place = client.topic(topic)
    stored = codec.batches(client.fetch(place, 0).batches, seed_of(place, 0))
    return [batch.append_time_us for batch in stored]


def is_uncertain(node: NodeProcess, wanted: bool) -> bool:
    """Whether the node's doubt about its clock is as wanted."""
    return (metric(node, "headrace_clock_uncertain") == 1) is wanted


def confirm_clock(node: NodeProcess) -> int:
    """Admin.ConfirmClock; the time it believes from now on, us."""
    reply = node_pb2_grpc.AdminStub(node.channel).ConfirmClock(
        node_pb2.ConfirmClockRequest(),
        metadata=(("authorization", f"Bearer {node.node_key}"),),
        timeout=120,
    )
    return int(reply.time_us)


@pytest.mark.parametrize("days", [1, -1])
def test_a_clock_that_jumps_under_a_node_is_not_believed_until_somebody_vouches(
    tmp_path: Path, faults: Faults, days: int
) -> None:
    with NodeProcess(tmp_path, environment=faults.environment, window_seconds=1) as node:
        furnish(node, "timed")
        client = node.client(EDITOR)
        topic = client.topic("timed")
        client.produce(topic, 0, [b"before"], sequence=0)
        member = client.join("member", "timed")
        assert member.assigned(2)
        faults.set(wall_seconds=days * DAY_S)
        node.wait_until(lambda: metric(node, "headrace_clock_uncertain") == 1)
        client.produce(topic, 0, [b"during"], sequence=1)
        # Windows go on by the monotonic clock, and no member is thrown out by the jump.
        assert node.admin().flush_usage().outstanding == 0
        first, second = times(node, "timed")
        assert 0 < second - first < 60_000_000
        assert client.describe_group("readers").members
        # After a start the jump itself is not seen; a clock behind the log is.
        node.kill()
        node.start()
        assert metric(node, "headrace_clock_uncertain") == (1 if days < 0 else 0)
        believed = confirm_clock(node)
        assert abs(believed - (time.time() + days * DAY_S) * 1e6) < 60e6
        assert metric(node, "headrace_clock_uncertain") == 0
        client = node.client(EDITOR)
        client.produce(topic, 0, [b"after"], sequence=2)
        assert client.values(topic, 0) == [b"before", b"during", b"after"]
        assert all(before < after for before, after in pairwise(times(node, "timed")))
        assert node.terminate() == 0


def test_a_clock_that_jumps_and_comes_back_leaves_no_trace(tmp_path: Path, faults: Faults) -> None:
    with NodeProcess(tmp_path, environment=faults.environment) as node:
        furnish(node, "timed")
        client = node.client(EDITOR)
        topic = client.topic("timed")
        for sequence, offset_s in enumerate((0, DAY_S, 0, -DAY_S, 0)):
            faults.set(wall_seconds=offset_s)
            node.wait_until(partial(is_uncertain, node, offset_s != 0))
            client.produce(topic, 0, [b"%d" % sequence], sequence=sequence)
        found = times(node, "timed")
        assert all(before < after for before, after in pairwise(found))
        assert found[-1] - found[0] < 60_000_000
