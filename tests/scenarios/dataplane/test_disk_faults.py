"""Bad days of a node's disk, with real processes: full, failing, rotten, somebody else's.

Rows D4 to D8, D11, O1, O2 and U3 of the fault matrix for one node. Whatever the day does: what was
acknowledged is there afterwards, what cannot be had is refused by name, and nobody sees a stack
trace. A store's own ways with damage are swept by the simulator; here stand a process, its Python
side, real kernels and what a user reads.
"""

import errno
import hashlib
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import pytest

from headrace import codec
from headrace.wire import stream_pb2
from tests.support.builders import commands
from tests.support.builders.node_objects import EDITOR, furnish, topic_spec
from tests.support.builders.seeds import seed_of
from tests.support.processes.disk import Disk
from tests.support.processes.faults import Faults
from tests.support.processes.node_process import Client, NodeProcess, refusal

pytestmark = [pytest.mark.check, pytest.mark.alone]

DISK_MIB = 128  # a journal takes 96 of them
LAYOUT = "layout-1/shard-0"
JOURNAL = f"{LAYOUT}/journal"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    with Disk(tmp_path / "node-1", DISK_MIB) as mounted:
        yield mounted


@pytest.fixture
def faults(tmp_path: Path) -> Iterator[Faults]:
    made = Faults(tmp_path)
    yield made
    made.close()


class Writer:
    """Sends batch after batch to one partition; remembers what was acknowledged."""

    def __init__(self, node: NodeProcess, topic: str, partition: int = 0) -> None:
        self._node = node
        self._name = topic
        self._partition = partition
        self.values: list[bytes | None] = []
        self.reconnect()

    def reconnect(self) -> None:
        """Go on at a node that was started again; what it sends next is what it sent last."""
        self.client = self._node.client(EDITOR)
        self.topic = self.client.topic(self._name)

    def send(self, size: int = 100) -> stream_pb2.ProduceReply:
        """One record; raises grpc.RpcError. A repetition of what was not acknowledged."""
        value = b"%d." % len(self.values) + bytes(size)
        reply = self.client.produce(self.topic, self._partition, [value], sequence=len(self.values))
        assert reply.base_offset == len(self.values)
        self.values.append(value)
        return reply

    def send_until(self, code: str, size: int) -> stream_pb2.Error:
        """Send until refused with this code; every other refusal fails."""
        while True:
            try:
                self.send(size)
            except grpc.RpcError as error:
                found = refusal(error)[1]
                assert found.code == code, found
                return found

    def send_through(self, *codes: str, seconds: float = 10.0) -> None:
        """Send one record, again and again, however often it is refused with these codes."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                self.send()
                return
            except grpc.RpcError as error:
                if refusal(error)[1].code not in codes or time.monotonic() > deadline:
                    raise

    def stored(self) -> list[bytes | None]:
        """What a reader finds."""
        return self.client.values(self.topic, self._partition)


def digests(folder: Path) -> dict[str, str]:
    """SHA-256 of every file in a folder, by its relative path."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


# ---- D6: a full disk ----


def test_a_node_is_not_formatted_on_a_full_disk_and_is_once_there_is_room(
    tmp_path: Path, disk: Disk
) -> None:
    node = NodeProcess(tmp_path, program=disk.node)
    for left in (0, 1 << 20):  # no room for the identity; none for the journal
        disk.fill(left)
        assert "STORAGE_FULL: the disk has reached its reserve" in node.refused()
        disk.free()
    with node:
        furnish(node, "made")
        assert Writer(node, "made").send().persisted == 1


@pytest.mark.parametrize("shards", [1, 3])
def test_a_full_disk_refuses_writes_by_name_and_nothing_else_and_recovers_by_itself(
    tmp_path: Path, shards: int
) -> None:
    with (
        Disk(tmp_path / "node-1", DISK_MIB * shards) as disk,
        NodeProcess(tmp_path, program=disk.node, shards=shards) as node,
    ):
        furnish(node, "filling", "going")
        writer = Writer(node, "filling")
        writer.send()
        member = writer.client.join("member", "filling")
        mine = next(one for one in member.assigned(2).assigned if one.partition == 0)
        disk.fill()
        found = writer.send_until("STORAGE_FULL", size=500_000)
        assert (found.kind, found.retry_after_ms) == (stream_pb2.RETRY_SAME_NODE, 1000)
        assert "free space" in found.hint
        # Reads, commits, topics that come and go: none of them needs more than the journal has.
        assert writer.stored() == writer.values
        writer.client.commit(mine, member.joined.group, 1)
        node.admin().apply(topic_spec("born"))
        node.admin().apply(commands.delete_topic("tp_going").control.request)
        node.wait_until(lambda: "STORAGE_FULL" in node.http("/readyz")[1])
        assert "the disk is full" in node.log()
        disk.free()
        writer.send_through("STORAGE_FULL")
        assert writer.stored() == writer.values
        member.close()
        assert node.terminate() == 0
        node.start()
        writer.reconnect()
        assert writer.stored() == writer.values


@pytest.mark.parametrize("end", [NodeProcess.kill, NodeProcess.terminate])
def test_a_node_that_ended_on_a_full_disk_starts_there_and_serves_what_it_has(
    tmp_path: Path, disk: Disk, end: Callable[[NodeProcess], int]
) -> None:
    node = NodeProcess(tmp_path, program=disk.node, window_seconds=1)
    with node:
        furnish(node, "kept")
        writer = Writer(node, "kept")
        for _ in range(3):
            writer.send(size=100_000)
        disk.fill()
        # Acknowledged from the journal, with no room in a segment.
        writer.send_until("STORAGE_FULL", size=500_000)
        assert end(node) in (0, -9)
        disk.fill()  # also what a cut of segments has freed
        node.start()
        disk.fill()
        writer.reconnect()
        assert writer.stored() == writer.values
        disk.free()
        writer.send_through("STORAGE_FULL")
        assert writer.stored() == writer.values
        node.kill()
        node.start()
        writer.reconnect()
        assert writer.stored() == writer.values


# ---- D7, D8, D11: a disk that fails ----


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize(
    ("part", "error", "code"),
    [
        ("/journal", errno.EIO, "IO_FAILED"),
        ("/topics/", errno.EIO, "IO_FAILED"),
        ("node-1", errno.EROFS, "STORAGE_READ_ONLY"),
    ],
    ids=["sync of the journal", "write of a segment", "read-only"],
)
def test_a_write_that_fails_ends_the_node_and_is_never_acknowledged(
    tmp_path: Path, faults: Faults, part: str, error: int, code: str, shards: int
) -> None:
    node = NodeProcess(tmp_path, environment=faults.environment, shards=shards)
    with node:
        furnish(node, "failing")
        writer = Writer(node, "failing")
        writer.send()
        faults.set(part, write=error, sync=error, opening=error)
        failed: list[grpc.RpcError] = []
        node.wait_until(lambda: bool(failed) or send_or_note(writer, failed))
        faults.set()  # once only: a later success must not be believed
        assert node.ended() == (1, b"")
        assert f"the node ends: a shard failed: {code}: " in node.log()
        assert "Traceback" not in node.log()
        assert faults.fired > 0
        # Either told by name, or cut off: never an answer that could be taken for an ack.
        assert failed[0].code() is grpc.StatusCode.UNAVAILABLE
        if failed[0].trailing_metadata():
            assert refusal(failed[0])[1].code in ("STORAGE_FAILED", "STOPPING")
        node.start()
        writer.reconnect()
        assert writer.stored()[: len(writer.values)] == writer.values
        writer.send()  # the one whose fate was unknown, under its sequence
        assert writer.stored() == writer.values


def send_or_note(writer: Writer, failed: list[grpc.RpcError]) -> bool:
    """Send a record; whether that failed."""
    try:
        writer.send()
    except grpc.RpcError as error:
        failed.append(error)
    return bool(failed)


def test_a_read_that_fails_is_refused_by_name_and_costs_nobody_else_anything(
    tmp_path: Path, faults: Faults
) -> None:
    node = NodeProcess(tmp_path, environment=faults.environment)
    with node:
        furnish(node, "read")
        writer = Writer(node, "read")
        for _ in range(4):
            writer.send(size=400_000)
        node.terminate()
        node.start()
        writer.reconnect()
        faults.set("/topics/", read=errno.EIO)
        with pytest.raises(grpc.RpcError) as failed:
            writer.stored()
        assert refusal(failed.value)[1].code == "READ_FAILED"
        assert Writer(node, "read", partition=1).send().persisted == 1
        faults.set()
        assert writer.stored() == writer.values
        # At a start it is no reason to give up a partition, whose bytes may all be there.
        node.kill()
        faults.set("/topics/", read=errno.EIO)
        assert "IO_FAILED" in node.refused()
        faults.set()
        node.start()
        writer.reconnect()
        assert writer.stored() == writer.values


def test_a_node_does_not_start_on_a_read_only_disk_and_does_once_it_is_writable(
    tmp_path: Path, disk: Disk
) -> None:
    node = NodeProcess(tmp_path, program=disk.node)
    with node:
        furnish(node, "kept")
        writer = Writer(node, "kept")
        writer.send()
        node.terminate()
        disk.remount("ro")
        before = digests(disk.seen)
        assert "STORAGE_READ_ONLY: the file system is mounted read-only" in node.refused()
        assert digests(disk.seen) == before
        disk.remount("rw")
        node.start()
        writer.reconnect()
        assert writer.stored() == writer.values


# ---- D4, D5: rot, and files that are cut, gone or strange ----


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A node's folder after a clean end: two topics, sealed segments, a snapshot, usage."""
    folder = tmp_path_factory.mktemp("kept")
    with NodeProcess(folder, window_seconds=1) as node:
        furnish(node, "hurt", "well")
        for name in ("hurt", "well"):
            writer = Writer(node, name)
            for _ in range(3):
                writer.send(size=700_000)  # segments of 1 MiB
        node.admin().flush_usage()
        assert node.terminate() == 0
    return folder


def flip(path: Path) -> None:
    """One byte in the middle is another."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x40
    path.write_bytes(data)


def cut(path: Path) -> None:
    """The second half is gone."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def zero(path: Path) -> None:
    """As long as before, and nothing in it."""
    path.write_bytes(bytes(path.stat().st_size))


Hurt = Callable[[Path], None]


@pytest.mark.parametrize(
    ("name", "hurt", "said"),
    [
        ("node.identity", flip, "IDENTITY_DAMAGED: node.identity fails its checksum"),
        ("node.identity", cut, "IDENTITY_DAMAGED: node.identity fails its checksum"),
        (JOURNAL, zero, "JOURNAL_DAMAGED: the journal is damaged"),
        (JOURNAL, cut, "JOURNAL_DAMAGED: the journal is damaged"),
        ("spool/*.spool", zero, "the usage spool cannot be used"),
    ],
)
def test_a_directory_with_damage_that_would_cost_everybody_is_refused_and_left_as_it_is(
    tmp_path: Path, kept: Path, name: str, hurt: Hurt, said: str
) -> None:
    data = tmp_path / "node-1"
    shutil.copytree(kept / "node-1", data)
    for path in data.glob(name):
        hurt(path)
    before = digests(data)
    assert said in NodeProcess(tmp_path).refused()
    assert digests(data) == before


@pytest.mark.parametrize("hurt", [flip, cut, zero, Path.unlink])
def test_damage_in_a_segment_concerns_its_partition_alone(
    tmp_path: Path, kept: Path, hurt: Hurt
) -> None:
    shutil.copytree(kept / "node-1", tmp_path / "node-1")
    with NodeProcess(tmp_path) as node:
        number = node.client(EDITOR).topic("hurt").number
        node.kill()
        folder = next((tmp_path / "node-1" / LAYOUT / "topics").glob(f"{number:016x}-*-0-*"))
        hurt(min(folder.glob("*.log")))
        node.start()
        client = node.client(EDITOR)
        assert (count_of(client, "hurt"), count_of(client, "well")) == (None, 3)
        # Found at the start or by the read: whoever looks after the node is told.
        node.wait_until(lambda: "DAMAGED: 1 partitions are stopped" in node.http("/readyz")[1])
        topic = client.topic("well")
        assert client.produce(topic, 1, [b"new"]).persisted == 1


def test_a_spool_that_is_lost_or_cut_stops_nobody_and_is_told(tmp_path: Path, kept: Path) -> None:
    shutil.copytree(kept / "node-1", tmp_path / "node-1")
    spool = tmp_path / "node-1" / "spool"
    cut(max(spool.glob("*.spool")))
    with NodeProcess(tmp_path) as node:
        assert count_of(node.client(EDITOR), "hurt") == 3
        node.kill()
        shutil.rmtree(spool)
        node.start()
        assert count_of(node.client(EDITOR), "well") == 3
        assert "the usage spool is gone and begins anew" in node.log()


def count_of(client: Client, name: str) -> int | None:
    """How many records a topic gives from its front; None: it is stopped, by name."""
    topic = client.topic(name)
    count = 0
    while True:
        try:
            reply = client.fetch(topic, 0, count)
        except grpc.RpcError as error:
            if refusal(error)[1].code not in ("DAMAGED", "CORRUPT"):
                raise
            return None
        if reply.status == stream_pb2.CORRUPT:
            return None
        if reply.status != stream_pb2.OK:
            return count
        count += sum(
            batch.record_count for batch in codec.batches(reply.batches, seed_of(topic, 0))
        )


# ---- O1, O2, U3: somebody else's directory ----


@pytest.mark.parametrize(
    ("ours", "theirs", "code"),
    [
        ('"cl_test"', '"cl_other"', "IDENTITY_OTHER_CLUSTER"),
        ('"nd_test"', '"nd_other"', "IDENTITY_OTHER_NODE"),
    ],
)
def test_a_directory_of_somebody_else_is_refused_and_stays_byte_for_byte(
    tmp_path: Path, kept: Path, ours: str, theirs: str, code: str
) -> None:
    shutil.copytree(kept / "node-1", tmp_path / "node-1")
    node = NodeProcess(tmp_path, exchange=(ours, theirs))
    before = digests(tmp_path / "node-1")
    said = node.refused()
    assert f"{code}: the data directory belongs to another" in said
    assert ours.strip('"') in said
    assert digests(tmp_path / "node-1") == before


def newer_identity(data: Path) -> None:
    """node.identity of the next format version, with a right checksum."""
    path = data / "node.identity"
    identity = bytearray(path.read_bytes())
    identity[8:10] = (int.from_bytes(identity[8:10], "little") + 1).to_bytes(2, "little")
    identity[4:8] = codec.crc32c(bytes(identity[8:])).to_bytes(4, "little")
    path.write_bytes(identity)


def test_a_directory_of_a_newer_release_is_refused_and_stays_byte_for_byte(
    tmp_path: Path, kept: Path
) -> None:
    shutil.copytree(kept / "node-1", tmp_path / "node-1")
    newer_identity(tmp_path / "node-1")
    before = digests(tmp_path / "node-1")
    said = NodeProcess(tmp_path).refused()
    assert "IDENTITY_NEWER: the data directory was written by a newer release: run that" in said
    assert digests(tmp_path / "node-1") == before


def test_a_second_node_on_a_directory_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    with NodeProcess(tmp_path) as first:
        furnish(first, "mine")
        writer = Writer(first, "mine")
        writer.send()
        other = tmp_path / "other"
        other.mkdir()
        second = NodeProcess(other, data_dir="../node-1")
        said = second.refused()
        assert "DIRECTORY_LOCKED: another process holds the data directory" in said
        writer.send()
        assert writer.stored() == writer.values
        assert first.terminate() == 0
        first.start()
        writer.reconnect()
        assert writer.stored() == writer.values
