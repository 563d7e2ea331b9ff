"""What shards counted, on its way into the spool: egress, requests, stored byte-seconds.

Owns the rows between a shard's COUNTERS frame and the spool. A shard says each window once and
keeps nothing, so a row is taken whatever happens: while the spool is full or its disk fails, rows
of one hour, topic, principal and meter grow into one: coarser, never less. Once WAITING_MAX rows
wait, hours grow into one too: what waits grows with what is counted, not with time. Names are
resolved when a row is spooled, as things are called then; a topic on its way out is remembered,
because its last rows come after it. Each shard's records are numbered 1, 2, 3, .. within one boot
of the process. Refuses to compute.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple

from dataplane.engine.frames import Counted, CountedRow, Kind, Meter, PartitionId, unpack_counters
from dataplane.engine.ring import Ring
from dataplane.evidence.boot import Boot
from dataplane.evidence.spool import Record
from dataplane.metadata.state import State, Topic
from headrace.wire import usage_pb2 as usage
from native.engine import Frame

USAGE_VALUE_VERSION: Final = 1
ENTRY_COUNTERS_MAX: Final = 256
CLOSED_TOPICS_MAX: Final = 4096
WAITING_MAX: Final = 65536
HOUR_US: Final = 3_600_000_000
UNATTRIBUTED: Final = "unattributed"

# In the spool a shard's records of one boot are those of a partition of topic 0, the metadata,
# which is never metered.
_COUNTERS_TOPIC: Final = 0


class Names(NamedTuple):
    """What a topic is called, and whose it is."""

    topic_id: str
    topic_name: str
    organization_id: str
    project_id: str


class Identity(NamedTuple):
    """Whose count a row is, and in which hour."""

    shard: int
    topic: int
    created_revision: int
    principal: int
    meter: Meter
    hour: int


class Series(NamedTuple):
    """Whose count a row is, in whatever hour."""

    shard: int
    topic: int
    created_revision: int
    principal: int
    meter: Meter


@dataclass(slots=True)
class _Sum:
    """Rows of one identity that were not spooled yet. `arrival` is of the first of them."""

    arrival: int
    row: CountedRow
    window_end_us: int
    is_final: bool = False

    def grow(self, row: CountedRow, window_end_us: int) -> None:
        self.row = row._replace(  # with the newer cumulative
            delta=self.row.delta + row.delta,
            window_start_us=min(self.row.window_start_us, row.window_start_us),
        )
        self.window_end_us = max(self.window_end_us, window_end_us)


class _Chosen(NamedTuple):
    """A row with its number, while it is being made durable."""

    identity: Identity
    sum: _Sum
    sequence: int


def counters_of(shard: int, boot: int) -> PartitionId:
    """The spool's identity for the records of a shard since a boot."""
    return PartitionId(_COUNTERS_TOPIC, boot, shard)


def is_counter(partition: PartitionId) -> bool:
    """Does the spool's record bear a counter? The engine gets no acknowledgement of those."""
    return partition.topic == _COUNTERS_TOPIC


class Counters:
    """Rows that wait for the spool. Runs on the event loop.

    :param waiting_max: so many rows wait for each hour by itself; beyond, hours are merged.
    """

    def __init__(
        self, ring: Ring, boot: Boot, *, node_id: str, waiting_max: int = WAITING_MAX
    ) -> None:
        self.boot: Final = boot
        self._node_id = node_id
        self._waiting_max = waiting_max
        self._waiting: dict[Identity, _Sum] = {}
        self._newest: dict[Series, Identity] = {}
        self._chosen: list[_Chosen] = []
        self._last: dict[int, _Chosen] = {}
        self._closed_topics: dict[int, Names] = {}
        self._on_arrival: Callable[[], None] = lambda: None
        self.arrived = 0
        self.spooled = 0
        self.merged = 0
        self.hours_merged = 0
        ring.handle((Kind.COUNTERS,), self._on_counters)

    def handle_arrival(self, handler: Callable[[], None]) -> None:
        """`handler` runs when there is something to spool."""
        self._on_arrival = handler

    def remember(self, topic: Topic) -> None:
        """The topic will go: what it was called, for the rows that come after it."""
        self._closed_topics.pop(topic.number, None)
        self._closed_topics[topic.number] = _names(topic)
        while len(self._closed_topics) > CLOSED_TOPICS_MAX:
            del self._closed_topics[next(iter(self._closed_topics))]

    def waiting_count(self) -> int:
        """Rows that are not durable yet."""
        return len(self._chosen) + len(self._waiting)

    def is_spooled(self, arrival: int) -> bool:
        """Is everything durable that had come when `arrived` was so much?"""
        if self._chosen:
            return False
        first = next(iter(self._waiting.values()), None)
        return first is None or first.arrival > arrival

    def choose(self, state: State) -> list[Record]:
        """The next records for the spool, the same ones until `settle`."""
        if not self._chosen:
            for identity in tuple(islice(self._waiting, ENTRY_COUNTERS_MAX)):
                last = self._last.get(identity.shard)
                sequence = last.sequence + 1 if last is not None else 1
                chosen = _Chosen(identity, self._pop(identity), sequence)
                self._last[identity.shard] = chosen
                self._chosen.append(chosen)
        return [self._record(state, chosen) for chosen in self._chosen]

    def settle(self) -> None:
        """The chosen records are durable."""
        self.spooled += len(self._chosen)
        self._chosen.clear()

    def _on_counters(self, frame: Frame) -> None:
        counted = unpack_counters(frame.body)
        self.arrived += 1
        for row in counted.rows:
            self._take(frame.shard, row, counted.window_end_us)
        if counted.is_final:
            self._end(frame.shard, counted)
        self._on_arrival()

    def _take(self, shard: int, row: CountedRow, window_end_us: int) -> None:
        hour = (window_end_us - 1) // HOUR_US
        identity = Identity(shard, row.topic, row.created_revision, row.principal, row.meter, hour)
        known = self._waiting.get(identity)
        if known is None and len(self._waiting) >= self._waiting_max:
            known = self._of_an_hour_before(identity)
        if known is None:
            self._waiting[identity] = _Sum(self.arrived, row, window_end_us)
            self._newest[_series(identity)] = identity
            return
        self.merged += 1
        known.grow(row, window_end_us)

    def _of_an_hour_before(self, identity: Identity) -> _Sum | None:
        """The newest row that waits of the same series: an older one would change its order."""
        newest = self._newest.get(_series(identity))
        if newest is None:
            return None
        self.hours_merged += 1
        return self._waiting[newest]

    def _pop(self, identity: Identity) -> _Sum:
        if self._newest.get(_series(identity)) == identity:
            del self._newest[_series(identity)]
        return self._waiting.pop(identity)

    def _end(self, shard: int, counted: Counted) -> None:
        """Marks the shard's last record as final. If everything was reported, repeats the latest
        with a delta of 0; a shard that never counted anything has none.
        """
        waits = next((one for one in reversed(self._waiting) if one.shard == shard), None)
        last = self._last.get(shard)
        if waits is None and last is not None:
            start_us = counted.window_end_us - 1
            again = last.sum.row._replace(delta=0, window_start_us=start_us)
            self._take(shard, again, counted.window_end_us)
            waits = next(reversed(self._waiting))
        if waits is not None:
            self._waiting[waits].is_final = True

    def _record(self, state: State, chosen: _Chosen) -> Record:
        """The value of `_usage`: a version byte, then UsageRecord, deterministic."""
        shard, topic, created_revision, principal, meter, _ = chosen.identity
        row = chosen.sum.row
        message = usage.Counter(
            node_id=self._node_id,
            incarnation=self.boot.number,
            shard=shard,
            sequence=chosen.sequence,
            topic=topic,
            principal=principal,
            meter=meter.name.lower(),
            delta=row.delta,
            cumulative=row.cumulative,
            window_start_us=row.window_start_us,
            window_end_us=chosen.sum.window_end_us,
            created_revision=created_revision,
            final=chosen.sum.is_final,
            cluster_id=state.cluster_id,
            principal_id=state.principal_id(principal) if principal else "",
        )
        names = self._called(state, topic)
        if names is not None:
            message.topic_id = names.topic_id
            message.topic_name = names.topic_name
            message.organization_id = names.organization_id
            message.project_id = names.project_id
        value = usage.UsageRecord(counter=message).SerializeToString(deterministic=True)
        return Record(
            counters_of(shard, self.boot.number),
            chosen.sequence,
            chosen.sum.window_end_us,
            bytes([USAGE_VALUE_VERSION]) + value,
        )

    def _called(self, state: State, number: int) -> Names | None:
        if number == 0:
            return Names("", UNATTRIBUTED, "", "")
        topic = state.topic_numbered(number)
        return _names(topic) if topic is not None else self._closed_topics.get(number)


def _series(identity: Identity) -> Series:
    return Series(*identity[:-1])


def _names(topic: Topic) -> Names:
    spec = topic.spec
    return Names(spec.topic_id, spec.name(), spec.organization_id, spec.project_id)
