"""Evidence on its way into a system topic: closed metering windows into `_usage`, trims into
`_retention`; counters of shards into `_usage`.

Owns the order engine -> spool -> topic -> acknowledgement: a window is acknowledged only once it is
in `_usage`, and the engine repeats what is not, in order. Every step is idempotent: the spool knows
each window by (topic, created_revision, partition, sequence), and the partition knows each batch by
producer and sequence. What is said of windows here holds for trims too; `channel.py` has what
differs. Refuses to compute: sums come from the log.

The spool knows a partition's windows by the last one alone, and an acknowledgement is for all
before it. So a window is taken only if it is the next of its partition: one that was left out for
lack of room is never skipped by a later one. Counters (`counters.py`) enter at the spool: they are
neither repeated nor acknowledged. The state is the event loop's; threads only write.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from itertools import islice
from typing import Final

from dataplane.engine.frames import (
    EngineResult,
    Kind,
    PartitionId,
)
from dataplane.engine.partition_client import PartitionClient
from dataplane.engine.ring import Ring
from dataplane.evidence.channel import USAGE, Arrival, Channel
from dataplane.evidence.counters import Counters, is_counter
from dataplane.evidence.spool import Entry, Record, Spool, SpoolFull
from dataplane.metadata.state import State
from headrace import codec
from native.engine import Frame

ENTRY_RECORDS_MAX: Final = 64
INCOMING_MAX: Final = 4096
PUBLISH_TIMEOUT_S: Final = 10.0
RETRY_S_MIN: Final = 0.05
RETRY_S_MAX: Final = 2.0

log = logging.getLogger("dataplane.metering")


class EvidencePublisher:
    """Spools and publishes what its channel brings; one task, `run`."""

    def __init__(
        self,
        ring: Ring,
        partitions: PartitionClient,
        spool: Spool,
        *,
        reading: Callable[[], AbstractContextManager[State]],
        incoming_max: int = INCOMING_MAX,
        channel: Channel = USAGE,
        counters: Counters | None = None,
    ) -> None:
        self._channel = channel
        self._counters = counters
        self._partitions = partitions
        self._spool = spool
        self._reading = reading
        self._incoming_max = incoming_max
        # In order of arrival; which is in order of sequence within a partition.
        self._incoming: dict[tuple[PartitionId, int], Arrival] = {}
        self._next: dict[PartitionId, int] = {}
        self._wake = asyncio.Event()
        self._progress = asyncio.Condition()
        # From here on this process gives the numbers: none can be in `_usage` before it tried.
        self._own_from = spool.number_next
        self._tried = -1
        self._may_publish = True
        self._trouble = ""
        self.retries = 0
        self.spools_lost = 0
        ring.handle((self._channel.arrives,), self._on_close)
        if counters is not None:
            counters.handle_arrival(self._wake.set)
            for partition in tuple(spool.sequences):
                if is_counter(partition) and partition.created_revision != counters.boot.number:
                    spool.forget(partition)

    def check_spool(self) -> None:
        """Notice a spool that is gone. Called once, when the metadata has recovered.

        The first start makes the spool before the cluster gets its name, so a new spool in a
        cluster that has one replaces another.
        """
        with self._reading() as state:
            known = state.bootstrap_op > 0
        if known and self._spool.is_new:
            self._lost(f"the {self._channel.name} spool is gone and begins anew")

    def _lost(self, what: str) -> None:
        self.spools_lost += 1
        log.error(
            "%s: what was not acknowledged comes again from the engine and may stand twice in "
            "`%s`, where reports count each once; find out who removed or restored %s",
            what,
            self._channel.topic,
            self._spool.folder,
        )

    def published_count(self) -> int:
        """Records in `_usage` from this node, ever."""
        return self._spool.published

    def pending_count(self) -> int:
        """Windows that are known here and not yet in `_usage`."""
        spooled = self._spool.number_next - self._spool.published
        return spooled + len(self._incoming) + self._counted_count()

    def _counted_count(self) -> int:
        return self._counters.waiting_count() if self._counters is not None else 0

    async def wait_published(self, partition: PartitionId, sequence: int) -> None:
        """Return once this window of this partition is in `_usage`."""
        async with self._progress:
            await self._progress.wait_for(lambda: self._spool.is_published(partition, sequence))

    async def wait_counted(self) -> None:
        """Return once all that shards have counted and handed over by now is in `_usage`."""
        await self.wait_spooled()
        number = self._spool.number_next
        async with self._progress:
            await self._progress.wait_for(lambda: self._spool.published >= number)

    async def wait_spooled(self) -> None:
        """Return once all that shards have counted and handed over by now is durable here."""
        if self._counters is None:
            return
        counters, arrived = self._counters, self._counters.arrived
        async with self._progress:
            await self._progress.wait_for(lambda: counters.is_spooled(arrived))

    def stop_publishing(self) -> None:
        """The partitions are about to stop: what comes now is spooled, for the next start."""
        self._may_publish = False

    def forget(self, partitions: Iterable[PartitionId]) -> None:
        """These partitions are gone; what of theirs still waits is published all the same."""
        for partition in partitions:
            self._next.pop(partition, None)
            self._spool.forget(partition)

    async def wait_idle(self) -> None:
        """Return once nothing waits."""
        async with self._progress:
            await self._progress.wait_for(lambda: self.pending_count() == 0)

    async def run(self) -> None:
        """Spool and publish until cancelled."""
        delay_s = RETRY_S_MIN
        while True:
            if self._incoming or self._counted_count() > 0:
                done = await self._spool_next()
            elif self._may_publish and self._spool.pending:
                done = await self._publish(self._spool.pending[0])
            else:
                await self._wake.wait()
                self._wake.clear()
                continue
            if done:
                delay_s, self._trouble = RETRY_S_MIN, ""
                continue
            self.retries += 1
            await asyncio.sleep(delay_s)
            delay_s = min(delay_s * 2, RETRY_S_MAX)

    def _say(self, trouble: str) -> None:
        """Log what is in the way: once, until something else is or it goes on."""
        if trouble != self._trouble:
            log.error("%s; trying again", trouble)
        self._trouble = trouble

    def _on_close(self, frame: Frame) -> None:
        close = self._channel.unpack(frame.body)
        if self._spool.holds(close.id, close.sequence):
            # Repeated. If it still waits, its acknowledgement will come with its publication.
            if self._spool.is_published(close.id, close.sequence):
                self._acknowledge(close.id, close.sequence)
            return
        # The first that comes after a start is the first that the partition's log has no
        # acknowledgement of; all before it are in `_usage`.
        expected = self._next.setdefault(close.id, close.sequence)
        if close.sequence == expected and len(self._incoming) < self._incoming_max:
            self._next[close.id] = expected + 1
            self._incoming[(close.id, close.sequence)] = close
            self._wake.set()
        # Else the engine repeats it.

    async def _spool_next(self) -> bool:
        try:
            if self._incoming:
                return await self._spool_incoming()
            assert self._counters is not None
            return await self._spool_counters(self._counters)
        except OSError as error:
            self._say(f"{self._channel.name} cannot be spooled and waits: {error}")
            return False
        except SpoolFull as full:
            self._say(f"{self._channel.name} is not spooled: {full}")
        if not self._may_publish or not self._spool.pending:
            return False
        return await self._publish(self._spool.pending[0])

    async def _spool_incoming(self) -> bool:
        chosen = tuple(islice(self._incoming, ENTRY_RECORDS_MAX))
        with self._reading() as state:
            records = [self._incoming[key].record(state) for key in chosen]
        await self._spool_records(records)
        for key in chosen:
            self._incoming.pop(key, None)
        return True

    async def _spool_counters(self, counters: Counters) -> bool:
        with self._reading() as state:
            records = counters.choose(state)
        await asyncio.to_thread(counters.boot.keep)
        await self._spool_records(records)
        counters.settle()
        async with self._progress:
            self._progress.notify_all()
        return True

    async def _spool_records(self, records: Sequence[Record]) -> None:
        """Make durable those that are new here. Raises OSError, SpoolFull."""
        change = self._spool.appending(records)
        if change is not None:
            await self._make(change)

    async def _make(self, change: bytes) -> None:
        """Write in a thread, settle here. Raises OSError; then nothing has changed."""
        await asyncio.to_thread(self._spool.store, change)
        self._spool.settle(change)

    async def _publish(self, entry: Entry) -> bool:
        batch = codec.encode(
            [
                codec.Record(key=None, value=record.value, timestamp_us=record.time_us)
                for record in entry.records
            ],
            producer_id=self._spool.producer.id,
            base_sequence=entry.number - self._spool.producer.base,
        )
        with self._reading() as state:
            topic = state.topic_numbered(self._channel.topic_number)
        if topic is None:
            return False
        target = PartitionId(topic.number, topic.created_revision, 0)
        try:
            reply = await self._partitions.request(
                Kind.PUBLISH, target, batch, timeout_s=PUBLISH_TIMEOUT_S
            )
        except TimeoutError:
            self._tried = entry.number
            self._say(f"{self._called(entry)}: no answer yet")
            return False
        if reply.result == EngineResult.DUPLICATE and not self._may_be_stored(entry):
            # The spool is older than `_usage`: what stands there under this number is another
            # entry, and ours would be lost if we took the answer.
            self._lost(
                f"{self._called(entry)} is in `{self._channel.topic}` already, from another spool"
            )
            await self._rotate_producer()
            return False
        self._tried = entry.number if reply.result == EngineResult.OK else self._tried
        if reply.result in (EngineResult.OK, EngineResult.DUPLICATE):
            return await self._published(entry)
        if reply.result == EngineResult.PRODUCER_LOST:
            log.warning(
                "%s: `%s` answered %s, publishing under a new producer id",
                self._called(entry),
                self._channel.topic,
                reply.result.name,
            )
            await self._rotate_producer()
        elif reply.result not in (EngineResult.BUSY, EngineResult.STOPPING):
            self._say(f"`{self._channel.topic}` answered {reply.result.name}")
        return False

    def _called(self, entry: Entry) -> str:
        return f"{self._channel.name} entry {entry.number}"

    def _may_be_stored(self, entry: Entry) -> bool:
        """Can this very entry be in `_usage` without our knowing?"""
        return entry.number < self._own_from or entry.number == self._tried

    async def _rotate_producer(self) -> None:
        try:
            await self._make(self._spool.rotating())
        except OSError as error:
            self._say(f"the {self._channel.name} spool cannot be written: {error}")

    async def _published(self, entry: Entry) -> bool:
        try:
            await self._make(self._spool.publishing(entry))
        except OSError as error:
            # Published again later, as the same batch: the partition will say DUPLICATE.
            self._say(f"the {self._channel.name} spool cannot be written: {error}")
            return False
        for record in entry.records:
            if not is_counter(record.partition):
                self._acknowledge(record.partition, record.sequence)
        async with self._progress:
            self._progress.notify_all()
        return True

    def _acknowledge(self, partition: PartitionId, sequence: int) -> None:
        self._partitions.post(self._channel.acknowledged, partition, arg1=sequence)
