"""Members, a producer and an observer of one consumer group, and the history they leave.

Each keeps going over whatever happens to the node, as a client in production does; only what the
node answered is written into the history. `check` holds it against what groups promise.
"""

import threading
from collections import defaultdict
from collections.abc import Callable
from types import TracebackType
from typing import NamedTuple, Self

import grpc

from headrace import codec
from headrace.wire import stream_pb2, stream_pb2_grpc
from tests.support.builders.seeds import seed_of
from tests.support.processes.node_process import CALL_SECONDS, Client, Session

FETCH_WAIT_MS = 20
RETRY_S = 0.02
MEMBER_TIMEOUT_MS = 8000
BATCH_RECORDS = 3


class Place(NamedTuple):
    """An offset of a partition, under a generation, and whose it is."""

    partition: int
    generation: int
    member: str
    offset: int


class History:
    """What was acknowledged, in the order in which the clients learned it."""

    def __init__(self) -> None:
        self.produced: dict[int, list[bytes]] = defaultdict(list)
        self.handled: dict[int, set[bytes]] = defaultdict(set)
        self.commits: list[Place] = []
        self.starts: list[Place] = []
        self.observed: dict[int, list[int]] = defaultdict(list)

    def has_commits(self, count: int) -> bool:
        """Were so many acknowledged?"""
        return len(self.commits) >= count

    def check(self) -> None:
        """Nothing lost, one owner for each generation, and no offset ever went back."""
        for partition, values in self.produced.items():
            assert set(values) <= self.handled[partition], f"partition {partition} lost records"
        for partition, offsets in self.observed.items():
            assert offsets == sorted(offsets), f"partition {partition}: an offset went back"
        owners: dict[tuple[int, int], set[str]] = defaultdict(set)
        for commit in self.commits:
            owners[commit.partition, commit.generation].add(commit.member)
        assert all(len(names) == 1 for names in owners.values()), owners
        for start in self.starts:
            before = [
                commit.offset
                for commit in self.commits
                if commit.partition == start.partition and commit.generation < start.generation
            ]
            assert start.offset >= max(before, default=0), start


class Worker:
    """Threads that repeat their step until the end, over refusals and lost connections."""

    def __init__(self, address: str, bearer: str, history: History) -> None:
        # Repeating is up to us: a stream that a node leaves unprocessed as it stops can hang for
        # good in grpcio's own repetition.
        options = [
            ("grpc.enable_retries", 0),
            ("grpc.initial_reconnect_backoff_ms", 20),
            ("grpc.max_reconnect_backoff_ms", 100),
        ]
        self.channel = grpc.insecure_channel(address, options=options)
        self.client = Client(self.channel, bearer)
        self.stream = stream_pb2_grpc.StreamStub(self.channel)
        self.metadata = (("authorization", f"Bearer {bearer}"),)
        self.history = history
        self.stopping = threading.Event()
        self.failures: list[BaseException] = []
        self._threads: list[threading.Thread] = []

    def repeat(self, step: Callable[[], None]) -> None:
        """Do this in a thread of its own, again and again."""
        self._threads.append(threading.Thread(target=self._repeat, args=(step,)))

    def _repeat(self, step: Callable[[], None]) -> None:
        while not self.stopping.is_set():
            try:
                step()
            except (grpc.RpcError, StopIteration):
                self.stopping.wait(RETRY_S)
            except BaseException as error:
                self.failures.append(error)
                raise

    def end(self) -> None:
        """Called before the threads are waited for."""

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stopping.set()
        self.end()
        for thread in self._threads:
            thread.join()
        self.channel.close()
        assert self.failures == []


class Producer(Worker):
    """Numbered values into every partition, each batch until it is acknowledged."""

    def __init__(
        self, address: str, bearer: str, history: History, topic: stream_pb2.Topic
    ) -> None:
        super().__init__(address, bearer, history)
        self._topic = topic
        self._turn = 0
        self.repeat(self._step)

    def _step(self) -> None:
        partition = self._turn % len(self._topic.partitions)
        sequence = self._turn // len(self._topic.partitions) * BATCH_RECORDS
        values = [b"%d/%d" % (partition, sequence + index) for index in range(BATCH_RECORDS)]
        # After a lost answer the same batch again: the partition tells what it has.
        self.client.produce(self._topic, partition, values, sequence=sequence)
        self.history.produced[partition].extend(values)
        self._turn += 1
        self.stopping.wait(RETRY_S / 4)


class Observer(Worker):
    """Looks at the committed offsets as the partitions' logs have them."""

    def __init__(
        self, address: str, bearer: str, history: History, topic: stream_pb2.Topic, group: int
    ) -> None:
        super().__init__(address, bearer, history)
        self._topic = topic
        self._group = group
        self.repeat(self._step)

    def _step(self) -> None:
        for partition in self._topic.partitions:
            reply = self.offsets(partition.index)
            self.history.observed[partition.index].append(reply.offset if reply.found else 0)
        self.stopping.wait(RETRY_S)

    def offsets(self, partition: int) -> stream_pb2.FetchOffsetsReply:
        """What the partition's log says of the group."""
        reply: stream_pb2.FetchOffsetsReply = self.stream.FetchOffsets(
            stream_pb2.FetchOffsetsRequest(
                topic=self._topic.number,
                created_revision=self._topic.created_revision,
                partition=partition,
                group=self._group,
            ),
            metadata=self.metadata,
            timeout=CALL_SECONDS,
        )
        return reply

    def caught_up(self) -> bool:
        """Has the group committed all there is?"""
        try:
            replies = [self.offsets(partition.index) for partition in self._topic.partitions]
        except grpc.RpcError:
            return False
        return all(reply.found and reply.offset == reply.high_watermark for reply in replies)


class Member(Worker):
    """Reads what it is assigned and commits what it handled; joins again whenever it must."""

    def __init__(
        self, address: str, bearer: str, history: History, *, name: str, topic: stream_pb2.Topic
    ) -> None:
        super().__init__(address, bearer, history)
        self.name = name
        self._topic = topic
        # Held while a partition is worked on, so that nothing is under way when it is let go of.
        self._lock = threading.Lock()
        self._assigned: dict[int, stream_pb2.Assigned] = {}
        self._positions: dict[tuple[int, int], int] = {}
        self._session: Session | None = None
        self.sessions_count = 0
        self.repeat(self._listen)
        self.repeat(self._work)

    def end(self) -> None:
        """Go away without a word."""
        if self._session is not None:
            self._session.cancel()

    def _listen(self) -> None:
        session = self.client.join(
            self.name, self._topic.name, group="readers", timeout_ms=MEMBER_TIMEOUT_MS
        )
        self._session = session
        self.sessions_count += 1
        try:
            while (event := session.next_event()).WhichOneof("message") == "assignment":
                with self._lock:
                    self._take(event.assignment)
                if event.assignment.revoked:
                    revoked = event.assignment.revoked
                    session.send(released=stream_pb2.Released(partitions=revoked))
        finally:
            with self._lock:
                self._assigned.clear()
            session.cancel()

    def _take(self, assignment: stream_pb2.Assignment) -> None:
        self._assigned = {row.partition: row for row in assignment.assigned}
        for row in assignment.assigned:
            key = (row.partition, row.generation)
            if key not in self._positions:
                self._positions[key] = row.committed
                self.history.starts.append(Place(*key, self.name, row.committed))

    def _work(self) -> None:
        if self._session is not None:
            self._session.send(heartbeat=stream_pb2.Heartbeat())
        for partition in range(len(self._topic.partitions)):
            with self._lock:
                row = self._assigned.get(partition)
                if row is not None and self._session is not None:
                    self._handle(row, self._session.joined.group)
        self.stopping.wait(RETRY_S)

    def _handle(self, row: stream_pb2.Assigned, group: int) -> None:
        key = (row.partition, row.generation)
        reply = self.client.fetch(
            self._topic,
            row.partition,
            self._positions[key],
            group=group,
            generation=row.generation,
            wait_ms=FETCH_WAIT_MS,
        )
        for batch in codec.batches(reply.batches, seed_of(self._topic, row.partition)):
            values = codec.decode(batch).values
            self.history.handled[row.partition].update(value for value in values if value)
            self._positions[key] = batch.base_offset + batch.record_count
        if reply.batches:
            self.client.commit(row, group, self._positions[key])
            self.history.commits.append(Place(*key, self.name, self._positions[key]))
