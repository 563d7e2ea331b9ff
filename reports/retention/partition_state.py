"""One partition at a time: what lives in it, by which policy, held by what, and what it breaks.

Owns the join of the figures that Spark summed with policies, holds, inventories and commits. It
happens in the driver: there are as many rows as partitions. Where the log begins is the highest of
what batches, inventory and trims say, since each is older than the next. Refuses sums over topics:
that is summary.py.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import Row

from reports.retention.export import UNLIMITED, Hold, Policy, RetentionExport
from reports.retention.figures import AGE_MS_MAX, HORIZONS
from reports.retention.freeze import FrozenRetention
from reports.retention.offsets import Commit
from reports.retention.rules import Seen, Standing, Violation, violations_of
from reports.source.cluster import Handle

Place = tuple[int, int, int]
"""topic (its number), created_revision, partition"""

LIMITS = ("retention_ms", "retention_bytes")
PLACES = pa.schema(
    [
        ("topic", pa.int64()),
        ("created_revision", pa.int64()),
        ("partition", pa.int32()),
        ("retention_ms", pa.int64()),
        ("retention_bytes", pa.int64()),
        ("min_retention_ms", pa.int64()),
        ("held_from", pa.int64()),
        ("log_start", pa.int64()),
    ]
)


@dataclass(frozen=True, slots=True)
class Due:
    """What the policy lets go within a horizon, and what is the oldest after that (0: nothing)."""

    bytes: int
    records: int
    oldest_us: int


@dataclass(frozen=True, slots=True)
class Line:
    """A partition that exists."""

    topic_id: str
    topic: str
    partition: int
    policy: Policy | None
    live_bytes: int
    live_records: int
    oldest_us: int
    newest_us: int
    cut_bytes: int
    """Below the log's start: unreadable, but stored until their segment goes. With live_bytes they
    are what the node stores; 0 where the reported trims do not reach as far as the log."""
    log_start: int
    log_end: int
    next_due_us: int | None
    upcoming: Mapping[str, Due]
    holds: tuple[str, ...]
    held_bytes: int
    """Stored from where on the partition is held."""
    blocked_bytes: int
    """That the policy would have taken, were it not held: as the node's last inventory has it."""
    violations: Sequence[Violation]

    @property
    def codes(self) -> tuple[str, ...]:
        """What it breaks, each rule once, in the order of the rules."""
        return tuple(dict.fromkeys(one.code for one in self.violations))


def place_of(row: Row) -> Place:
    """The partition that a row of figures is of."""
    return row["topic"], row["created_revision"], row["partition"]


@dataclass(frozen=True, slots=True)
class Trimmed:
    """What the trims of a partition say together. end: where the last one moved the log's start;
    bytes: of segments that went; whole: none is missing, from the first record on."""

    end: int = 0
    bytes: int = 0
    whole: bool = True


def trimmed_of(ranges: Iterable[Row], gaps: Iterable[Row]) -> dict[Place, Trimmed]:
    """By partition. ranges: figures.deleted by PARTITION and more; gaps: figures.trim_gaps."""
    torn = {place_of(row) for row in gaps}
    rows: dict[Place, list[Row]] = defaultdict(list)
    for row in ranges:
        rows[place_of(row)].append(row)
    return {
        place: Trimmed(
            end=max(row["last_offset"] for row in found) + 1,
            bytes=sum(row["bytes"] for row in found),
            whole=place not in torn and min(row["first_offset"] for row in found) == 0,
        )
        for place, found in rows.items()
    }


def places(
    frozen: FrozenRetention, inventories: Mapping[Place, Row], trimmed: Mapping[Place, Trimmed]
) -> pa.Table:
    """PLACES: every partition with the policy that is wished for it, where it is held and begins.

    A topic that the control plane does not know is reported with the limits of its inventory.
    """
    policies, held = frozen.export.in_force(), frozen.export.holds_by_topic()
    rows = []
    for topic, place in _partitions(frozen.topics):
        policy, seen = policies.get(topic.topic_id), inventories.get(place)
        limits = (
            (policy.retention_ms, policy.retention_bytes, policy.min_retention_ms)
            if policy is not None
            else _limits(seen)
        )
        held_from = _held_from(_covering(held.get(topic.topic_id, ()), place[2]), seen)
        log_start = _start(None, seen, trimmed.get(place))
        rows.append(dict(zip(PLACES.names, (*place, *limits, held_from, log_start), strict=True)))
    return pa.Table.from_pylist(rows, schema=PLACES)


def lines(
    frozen: FrozenRetention,
    inventories: Mapping[Place, Row],
    logs: Mapping[Place, Row],
    trimmed: Mapping[Place, Trimmed],
) -> list[Line]:
    """Every partition that exists, by name. trimmed: its reported trims."""
    policies, held = frozen.export.in_force(), frozen.export.holds_by_topic()
    commits: dict[Place, list[Commit]] = defaultdict(list)
    for commit in frozen.commits:
        commits[commit.topic, commit.created_revision, commit.partition].append(commit)
    found = []
    for topic, place in _partitions(frozen.topics):
        seen, log = inventories.get(place), logs.get(place)
        holds = _covering(held.get(topic.topic_id, ()), place[2])
        policy = policies.get(topic.topic_id)
        standing = _standing(
            policy,
            log,
            seen,
            start=_start(log, seen, trimmed.get(place)),
            as_of_us=frozen.export.as_of_us,
            commits=commits[place],
        )
        line = _line(frozen.export, topic, place[2], standing, log, seen, holds)
        found.append(replace(line, cut_bytes=_cut(log, trimmed.get(place, Trimmed()))))
    return sorted(found, key=lambda line: (line.topic, line.topic_id, line.partition))


def _standing(
    policy: Policy | None,
    log: Row | None,
    seen: Row | None,
    *,
    start: int,
    as_of_us: int,
    commits: Sequence[Commit],
) -> Standing:
    def figure(name: str) -> int:
        return int(log[name]) if log is not None else 0

    return Standing(
        policy=policy,
        live_bytes=figure("live_bytes"),
        largest_batch=figure("largest_batch"),
        expired_bytes=figure("expired_bytes"),
        aged_bytes=figure("aged_bytes"),
        held_bytes=figure("held_bytes"),
        future_bytes=figure("future_bytes"),
        log_start=start,
        log_end=max(figure("log_end"), start),
        end_due_24h=max(figure("end_due_24h"), start),
        as_of_us=as_of_us,
        seen=Seen(
            seen["at_us"],
            *_limits(seen),
            seen["newest_us"],
        )
        if seen is not None
        else None,
        commits=commits,
    )


def _line(
    export: RetentionExport,
    topic: Handle,
    partition: int,
    standing: Standing,
    log: Row | None,
    seen: Row | None,
    holds: Sequence[Hold],
) -> Line:
    known = export.topics.get(topic.topic_id)
    foreseen = seen["expires_us"] if seen is not None else 0
    latest_us = export.as_of_us + AGE_MS_MAX * 1000
    due_us = log["next_due_us"] if log is not None else None
    return Line(
        topic_id=topic.topic_id,
        topic=known.name if known is not None else topic.name,
        partition=partition,
        policy=standing.policy,
        live_bytes=standing.live_bytes,
        live_records=log["live_records"] if log is not None else 0,
        cut_bytes=0,
        oldest_us=log["oldest_us"] if log is not None else 0,
        newest_us=log["newest_us"] if log is not None else 0,
        log_start=standing.log_start,
        log_end=standing.log_end,
        # The node knows its segments: what it foresees is later than what the policy allows.
        next_due_us=foreseen if export.as_of_us < foreseen <= latest_us else due_us,
        upcoming={
            name: Due(
                log[f"bytes_{name}"] if log is not None else 0,
                log[f"records_{name}"] if log is not None else 0,
                (log[f"oldest_us_{name}"] or 0) if log is not None else 0,
            )
            for name in HORIZONS
        },
        holds=tuple(hold.id for hold in holds),
        held_bytes=standing.held_bytes,
        blocked_bytes=seen["held_bytes"] if seen is not None and seen["held"] else 0,
        violations=violations_of(standing),
    )


def _start(log: Row | None, seen: Row | None, trimmed: Trimmed | None) -> int:
    """Where the log begins: the highest of what batches, inventory and trims say."""
    return max(
        log["log_start"] if log else 0,
        seen["log_start"] if seen else 0,
        trimmed.end if trimmed else 0,
    )


def _cut(log: Row | None, trimmed: Trimmed) -> int:
    """What was appended before the first live batch and did not go with a reported segment. A
    log that begins behind its last trim was trimmed since: nothing is concluded from it."""
    if log is None or not trimmed.whole or log["log_start"] > trimmed.end:
        return 0
    return max(0, int(log["bytes_before"]) - trimmed.bytes)


def _partitions(topics: Iterable[Handle]) -> Iterable[tuple[Handle, Place]]:
    for topic in topics:
        for partition in range(topic.partitions):
            yield topic, (topic.number, topic.created_revision, partition)


def _covering(holds: Sequence[Hold], partition: int) -> list[Hold]:
    """Those of a topic's holds that concern a partition of it."""
    return [hold for hold in holds if hold.covers(partition)]


def _held_from(holds: Sequence[Hold], seen: Row | None) -> int | None:
    """The lowest offset that anything holds: of the control plane's holds and the node's own."""
    offsets = [hold.from_offset for hold in holds]
    if seen is not None and seen["held"]:
        offsets.append(seen["held_from"])
    return min(offsets, default=None)


def _limits(seen: Row | None) -> tuple[int, int, int]:
    """What the node keeps by; it takes a limit of 0, which was once a wish, as none."""
    if seen is None:
        return UNLIMITED, UNLIMITED, 0
    age, size = (seen[name] if seen[name] > 0 else UNLIMITED for name in LIMITS)
    return age, size, seen["retention_ms_min"]
