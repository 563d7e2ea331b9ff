"""What the report says beside its rows: per topic, and in all.

Owns `topics` and `totals` of retention.json, which the control plane loads and the page draws.
Whole numbers are strings, times RFC 3339. Everything of a topic stands in its own entry, so that a
reader who may see one topic is shown that entry and nothing else. Refuses layout and judgement.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import Row

from reports.retention.export import (
    Hold,
    Policy,
    RetentionExport,
    hold_document,
    instant_text,
    policy_document,
)
from reports.retention.figures import AGE_BUCKETS, DAYS_FORESEEN, HORIZONS
from reports.retention.partition_state import Line, Place, place_of
from reports.retention.rules import RULES, UNREAD_AT_RISK, UNREAD_DELETED

CAUSES = ("time", "size", "purge")
Document = dict[str, object]


@dataclass(frozen=True, slots=True)
class Gathered:
    """What Spark computed, collected: rows of figures.py, a few for each partition.

    deleted: by topic_id and cause; ranges: by partition and cause; hourly: bytes by topic_id, cause
    and hour_us; broken: by topic_id, partition and violation: trims and bytes.
    """

    lines: Sequence[Line]
    deleted: Sequence[Row]
    ranges: Sequence[Row]
    hourly: Sequence[Row]
    broken: Sequence[Row]
    ages: Sequence[Row]
    schedule: Sequence[Row]
    gaps: Sequence[Row]
    conflicts: int
    topic_of: Mapping[Place, str]
    names: Mapping[str, str]
    """What a topic was called in its trims, for those that the export does not list."""


@dataclass(slots=True)
class _Part:
    """What of all that is one topic's."""

    lines: list[Line] = field(default_factory=list)
    deleted: list[Row] = field(default_factory=list)
    ranges: list[Row] = field(default_factory=list)
    broken: list[Row] = field(default_factory=list)
    ages: list[Row] = field(default_factory=list)
    schedule: list[Row] = field(default_factory=list)
    history: list[Policy] = field(default_factory=list)
    holds: list[Hold] = field(default_factory=list)


def topics_of(gathered: Gathered, export: RetentionExport) -> list[Document]:
    """One entry for every topic that exists or had something deleted, by name."""
    parts = _parts(gathered, export)
    ids = {line.topic_id for line in gathered.lines} | {row["topic_id"] for row in gathered.deleted}
    entries = [_topic(topic_id, parts[topic_id], gathered, export) for topic_id in ids]
    return sorted(entries, key=lambda entry: (str(entry["topic"]), str(entry["topic_id"])))


def _parts(gathered: Gathered, export: RetentionExport) -> dict[str, _Part]:
    parts: dict[str, _Part] = defaultdict(_Part)
    for line in gathered.lines:
        parts[line.topic_id].lines.append(line)
    for row in gathered.deleted:
        parts[row["topic_id"]].deleted.append(row)
    for row in gathered.ranges:
        parts[row["topic_id"]].ranges.append(row)
    for row in gathered.broken:
        parts[row["topic_id"]].broken.append(row)
    for row in gathered.ages:
        parts[gathered.topic_of.get(place_of(row), "")].ages.append(row)
    for row in gathered.schedule:
        parts[gathered.topic_of.get(place_of(row), "")].schedule.append(row)
    for policy in export.policies:
        parts[policy.topic_id].history.append(policy)
    for hold in export.holds:
        parts[hold.topic_id].holds.append(hold)
    return parts


def totals_of(gathered: Gathered, rows: int) -> Document:
    """The figures of the manifest."""
    lines = gathered.lines
    found = [one for line in lines for one in line.violations]
    return _texts(
        {
            "rows": rows,
            "trims": sum(row["trims"] for row in gathered.deleted),
            "deleted_bytes": sum(row["bytes"] for row in gathered.deleted),
            "deleted_records": sum(row["records"] for row in gathered.deleted),
            "live_bytes": sum(line.live_bytes for line in lines),
            "live_records": sum(line.live_records for line in lines),
            "cut_bytes": sum(line.cut_bytes for line in lines),
            "due_24h_bytes": sum(line.upcoming["24h"].bytes for line in lines),
            "held_bytes": sum(line.held_bytes for line in lines),
            "hold_blocked_bytes": sum(line.blocked_bytes for line in lines),
            "violations": len(found) + sum(row["trims"] for row in gathered.broken),
        }
    )


def violation_counts(gathered: Gathered) -> dict[str, int]:
    """How often each rule is broken: by partitions and groups now, and by trims."""
    counts = dict.fromkeys(RULES, 0)
    for line in gathered.lines:
        for one in line.violations:
            counts[one.code] += 1
    for row in gathered.broken:
        for code in row["violation"].split():
            counts[code] += row["trims"]
    return counts


def sum_upcoming(lines: Iterable[Line]) -> dict[str, Document]:
    """What goes within each horizon, and what is the oldest record after it."""
    every = list(lines)
    found: dict[str, Document] = {}
    for name in HORIZONS:
        due = [line.upcoming[name] for line in every]
        oldest = min((one.oldest_us for one in due if one.oldest_us), default=0)
        found[name] = {
            "bytes": str(sum(one.bytes for one in due)),
            "records": str(sum(one.records for one in due)),
            "oldest_after": instant_text(oldest) if oldest else None,
        }
    return found


def sum_buckets(rows: Iterable[Row]) -> list[Document]:
    """Live bytes and records by age, every bucket, youngest first."""
    sums = {bucket: [0, 0] for bucket in AGE_BUCKETS}
    for row in rows:
        sums[row["bucket"]][0] += row["bytes"]
        sums[row["bucket"]][1] += row["records"]
    return [
        {"bucket": bucket, "bytes": str(size), "records": str(count)}
        for bucket, (size, count) in sums.items()
    ]


def sum_days(rows: Iterable[Row]) -> list[Document]:
    """What is due, day by day; days on which nothing is are left out."""
    sums: dict[int, list[int]] = {}
    for row in rows:
        of_day = sums.setdefault(row["day"], [0, 0])
        of_day[0] += row["bytes"]
        of_day[1] += row["records"]
    return [
        {"day": day, "bytes": str(sums[day][0]), "records": str(sums[day][1])}
        for day in range(DAYS_FORESEEN + 1)
        if day in sums
    ]


def _topic(topic_id: str, part: _Part, gathered: Gathered, export: RetentionExport) -> Document:
    known, lines = export.topics.get(topic_id), part.lines
    oldest = min((line.oldest_us for line in lines if line.oldest_us), default=0)
    newest = max((line.newest_us for line in lines), default=0)
    return {
        "topic": known.name if known else gathered.names.get(topic_id, topic_id),
        "topic_id": topic_id,
        "organization_id": known.organization_id if known else "",
        "organization": known.organization if known else "",
        "project_id": known.project_id if known else "",
        "project": known.project if known else "",
        "exists": bool(lines),
        "policy": policy_document(part.history[-1]) if part.history else None,
        "history": [policy_document(policy) for policy in part.history],
        **_texts(
            {
                "partitions": len(lines),
                "live_bytes": sum(line.live_bytes for line in lines),
                "live_records": sum(line.live_records for line in lines),
                "cut_bytes": sum(line.cut_bytes for line in lines),
                "held_bytes": sum(line.held_bytes for line in lines),
                "hold_blocked_bytes": sum(line.blocked_bytes for line in lines),
            }
        ),
        "oldest_at": instant_text(oldest) if oldest else None,
        "newest_at": instant_text(newest) if newest else None,
        "deleted": [_deleted(row) for row in part.deleted],
        "ranges": [_range(row) for row in part.ranges],
        "upcoming": sum_upcoming(lines),
        "ages": sum_buckets(part.ages),
        "schedule": sum_days(part.schedule),
        "holds": [hold_document(hold) for hold in part.holds],
        "violations": _violations(part),
    }


def _deleted(row: Row) -> Document:
    return {
        "cause": row["cause"],
        **_texts({name: row[name] for name in ("trims", "bytes", "records")}),
        "oldest_at": instant_text(row["oldest_us"]) if row["oldest_us"] else None,
        "newest_at": instant_text(row["newest_us"]) if row["newest_us"] else None,
        **_texts({name: row[name] for name in ("age_min_ms", "age_p50_ms", "age_max_ms")}),
    }


def _range(row: Row) -> Document:
    whole = ("partition", "trims", "bytes", "records", "first_offset", "last_offset")
    return {"cause": row["cause"], **_texts({name: row[name] for name in whole})}


def _violations(part: _Part) -> list[Document]:
    now: list[Document] = [
        {
            "code": one.code,
            "partition": str(line.partition),
            "group": one.group if one.code in (UNREAD_AT_RISK, UNREAD_DELETED) else None,
            "detail": one.detail,
        }
        for line in part.lines
        for one in line.violations
    ]
    then: list[Document] = [
        {
            "code": code,
            "partition": str(row["partition"]),
            "group": None,
            "detail": f"{row['trims']:,} trims took {row['bytes']:,} bytes",
        }
        for row in part.broken
        for code in row["violation"].split()
    ]
    return now + then


def _texts(figures: Mapping[str, int | None]) -> Document:
    return {name: None if value is None else str(value) for name, value in figures.items()}
