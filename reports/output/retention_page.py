"""retention.html: one page that needs nothing else, for people who would rather look than read.

Owns words and layout. Everything that a user could have typed is escaped; there is no script and no
request to anywhere. Exact figures stand beside rounded ones. It is drawn from what retention.json
says, so the two cannot differ. Refuses to compute.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from html import escape

from reports.billing.usage import HOUR_US
from reports.output.chart import bytes_text
from reports.output.markup import badge, document, more, section, table, tiles
from reports.output.retention_charts import Series, columns
from reports.retention.export import UNLIMITED, Policy, RetentionExport
from reports.retention.figures import DAY_US, FUTURE, UNKNOWN
from reports.retention.freeze import FrozenRetention
from reports.retention.rules import RULES
from reports.retention.summary import (
    CAUSES,
    Document,
    Gathered,
    sum_buckets,
    sum_days,
    violation_counts,
)

ROWS_MAX = 200
HOURS_MAX = 48
DAYS_SHOWN = 7
FILE = "retention.json"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CAUSE_COLOURS = {"time": 0, "size": 2, "purge": 5}
_UNITS_MS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s"))
_GRANULARITY = (
    "<p>Records are deleted in whole segments, once the youngest record of a segment is due. Up to "
    "one segment of older records is therefore kept longer than the policy says.</p>"
)


def retention_page(
    topics: Sequence[Document], totals: Document, frozen: FrozenRetention, gathered: Gathered
) -> str:
    """The whole document. topics, totals: as retention.json has them."""
    body = "".join(
        [
            _heading(frozen, gathered),
            _figures(totals, gathered),
            section("Violations", _violations(topics, gathered)),
            _deletions(topics, gathered),
            section("Stored data by age", _ages(gathered)),
            section("Upcoming deletions", _upcoming(topics, gathered) + _GRANULARITY),
            section("Policies", _policies(topics, frozen.export)),
            _holds(topics, frozen.export),
            _evidence(gathered),
            _footer(frozen),
        ]
    )
    return document("Retention report", body)


def age_text(milliseconds: int) -> str:
    """A duration for people: the largest unit that it fills, with one decimal where it is odd."""
    for size, unit in _UNITS_MS:
        if milliseconds >= size:
            tenths = milliseconds * 10 // size
            return f"{tenths // 10:,}{f'.{tenths % 10}' if tenths % 10 else ''} {unit}"
    return f"{milliseconds} ms"


def _heading(frozen: FrozenRetention, gathered: Gathered) -> str:
    as_of = _EPOCH + timedelta(microseconds=frozen.export.as_of_us)
    whole = not gathered.gaps and gathered.conflicts == 0
    state = badge(whole, "deletion records complete" if whole else "records missing: see evidence")
    return (
        f"<header><h1>Retention report</h1><p>As of {as_of:%Y-%m-%d %H:%M} UTC {state}</p></header>"
    )


def _figures(totals: Document, gathered: Gathered) -> str:
    def size(name: str) -> tuple[str, str]:
        count = _number(totals[name])
        return bytes_text(count), f"{count:,} bytes"

    live, gone, due = size("live_bytes"), size("deleted_bytes"), size("due_24h_bytes")
    held, broken = size("hold_blocked_bytes"), _number(totals["violations"])
    kinds = sum(1 for count in violation_counts(gathered).values() if count)
    return tiles(
        [
            ("Stored", live[0], f"{_number(totals['live_records']):,} records, {live[1]}"),
            ("Deleted", gone[0], f"{_number(totals['deleted_records']):,} records, {gone[1]}"),
            ("Due within 24 hours", due[0], due[1]),
            ("Kept only by legal holds", held[0], held[1]),
            ("Violations", f"{broken:,}", f"{kinds} of {len(RULES)} rules violated"),
        ]
    )


def _violations(topics: Sequence[Document], gathered: Gathered) -> str:
    counts = violation_counts(gathered)
    rules = "".join(
        f"<li>{badge(False, f'{code} &times; {counts[code]:,}')}&ensp;{escape(words)}</li>"
        for code, words in RULES.items()
        if counts[code]
    )
    if not rules:
        names = ", ".join(RULES)
        return f"<p>{badge(True, 'none')} Rules checked: {names}.</p>"
    rows = [
        [
            escape(str(found["code"])),
            escape(str(topic["topic"])),
            str(found["partition"]),
            escape(str(found["group"] or "")),
            escape(str(found["detail"])),
        ]
        for topic in topics
        for found in _items(topic["violations"])
    ]
    heads = ["Rule", "Topic", "Partition", "Group", "Finding"]
    listed = table(heads, rows[:ROWS_MAX], len(heads))
    return f'<ul class="plain">{rules}</ul>{listed}{more(len(rows), ROWS_MAX, "findings", FILE)}'


def _deletions(topics: Sequence[Document], gathered: Gathered) -> str:
    rows = [
        [
            escape(str(topic["topic"])),
            escape(str(found["cause"])),
            f"{_number(found['bytes']):,}",
            f"{_number(found['records']):,}",
            f"{_number(found['trims']):,}",
            _short(found["oldest_at"]),
            _short(found["newest_at"]),
            _ages_of(found),
        ]
        for topic in topics
        for found in _items(topic["deleted"])
    ]
    if not rows:
        return section("Deleted", "<p>Nothing was deleted.</p>")
    heads = ["Topic", "Cause", "Bytes", "Records", "Deletions", "Oldest record", "Newest record"]
    listed = table([*heads, "Age: min · p50 · max"], rows[:ROWS_MAX], 2)
    listed += more(len(rows), ROWS_MAX, "lines", FILE) + _cut(gathered)
    return section("Deleted data by cause", _timeline(gathered)) + section("Deletions", listed)


def _cut(gathered: Gathered) -> str:
    """What is deleted and still stored, in words."""
    stored = sum(line.cut_bytes for line in gathered.lines)
    now = f" Currently {stored:,} bytes are stored in this way." if stored else ""
    return (
        "<p>Records are counted when they become unreadable, bytes when their segment is deleted. "
        "A purge may end inside a segment: the records it made unreadable there stay on disk, and "
        f"their bytes are counted when the segment is deleted.{now}</p>"
    )


def _timeline(gathered: Gathered) -> str:
    hours = [row["hour_us"] for row in gathered.hourly]
    first, last = min(hours), max(hours)
    hourly = (last - first) // HOUR_US < HOURS_MAX
    step = HOUR_US if hourly else DAY_US
    sums: dict[tuple[int, str], int] = defaultdict(int)
    for row in gathered.hourly:
        sums[row["hour_us"] // step, row["cause"]] += row["bytes"]
    causes = [cause for cause in CAUSES if any(key[1] == cause for key in sums)]
    buckets = range(first // step, last // step + 1)
    labels = [
        (_EPOCH + timedelta(microseconds=bucket * step)).strftime(
            "%d %b %H:%M" if hourly else "%d %b"
        )
        for bucket in buckets
    ]
    values = [[sums[bucket, cause] for cause in causes] for bucket in buckets]
    series = [Series(cause, _CAUSE_COLOURS[cause]) for cause in causes]
    unit = "hour" if hourly else "day"
    return columns(f"Deleted bytes per {unit} and cause", labels, series, values, legend=True)


def _ages(gathered: Gathered) -> str:
    buckets = sum_buckets(gathered.ages)
    names = [str(one["bucket"]) for one in buckets]
    odd = (FUTURE, UNKNOWN)
    values = [
        [0, _number(one["bytes"])] if one["bucket"] in odd else [_number(one["bytes"]), 0]
        for one in buckets
    ]
    series = [Series("age since append", 0), Series("future-dated or unknown", 5)]
    strange = any(value[1] for value in values)
    drawn = columns("Stored bytes by age", names, series, values, legend=strange)
    rows = [
        [escape(name), f"{_number(one['bytes']):,}", f"{_number(one['records']):,}"]
        for name, one in zip(names, buckets, strict=True)
        if _number(one["records"])
    ]
    if not rows:
        return "<p>No stored data.</p>"
    return drawn + table(["Age", "Bytes", "Records"], rows, 1)


def _upcoming(topics: Sequence[Document], gathered: Gathered) -> str:
    days = {int(str(one["day"])): _number(one["bytes"]) for one in sum_days(gathered.schedule)}
    labels = ["now", *(f"+{day} d" for day in range(1, DAYS_SHOWN + 1))]
    values = [[days.get(day, 0)] for day in range(DAYS_SHOWN + 1)]
    drawn = (
        columns("Bytes due per day", labels, [Series("due", 1)], values, legend=False)
        if any(value[0] for value in values)
        else f"<p>No deletions are due within {DAYS_SHOWN} days.</p>"
    )
    rows = []
    for topic in topics:
        due = topic["upcoming"]
        assert isinstance(due, dict)
        figures = [f"{_number(due[name]['bytes']):,}" for name in due]
        if topic["exists"]:
            live = f"{_number(topic['live_bytes']):,}"
            after = due["7d"]["oldest_after"]
            rows.append([escape(str(topic["topic"])), live, *figures, _short(after)])
    heads = [
        "Topic",
        "Stored",
        "Due now",
        "Within 1 h",
        "Within 24 h",
        "Within 7 d",
        "Oldest after 7 d",
    ]
    listed = table(heads, rows[:ROWS_MAX], 1)
    return drawn + listed + more(len(rows), ROWS_MAX, "topics", FILE)


def _policies(topics: Sequence[Document], export: RetentionExport) -> str:
    policies = export.in_force()
    rows = []
    for topic in topics:
        policy = policies.get(str(topic["topic_id"]))
        if policy is None or not topic["exists"]:
            continue
        by = export.api_keys.get(policy.by, policy.by)
        changed = _EPOCH + timedelta(microseconds=policy.changed_us)
        rows.append(
            [
                escape(str(topic["topic"])),
                *_limits(policy),
                policy.source,
                f"{changed:%Y-%m-%d %H:%M} by {escape(by)}",
            ]
        )
    heads = ["Topic", "Age", "Size", "Minimum age", "Source", "Last changed"]
    listed = table(heads, rows[:ROWS_MAX], len(heads))
    return listed + more(len(rows), ROWS_MAX, "topics", FILE)


def _limits(policy: Policy) -> list[str]:
    age, size = policy.retention_ms, policy.retention_bytes
    return [
        "unlimited" if age == UNLIMITED else age_text(age),
        "unlimited" if size == UNLIMITED else bytes_text(size),
        age_text(policy.min_retention_ms) if policy.min_retention_ms else "none",
    ]


def _holds(topics: Sequence[Document], export: RetentionExport) -> str:
    rows = [
        [
            escape(str(topic["topic"])),
            escape(str(hold["partition"] or "all")),
            escape(str(hold["from_offset"])),
            escape(str(hold["case_id"])),
            escape(export.api_keys.get(str(hold["owner"]), str(hold["owner"]))),
            escape(str(hold["reason"])),
            escape(str(hold["state"])),
            f"{_number(topic['hold_blocked_bytes']):,}",
        ]
        for topic in topics
        for hold in _items(topic["holds"])
    ]
    if not rows:
        return ""
    heads = ["Topic", "Partition", "From offset", "Case", "Owner", "Reason", "State"]
    words = (
        "<p>Kept by holds: bytes of the topic that the policy would otherwise have deleted, as of "
        "the last inventory of each partition.</p>"
    )
    listed = table([*heads, "Kept by holds"], rows[:ROWS_MAX], 7)
    return section("Legal holds", listed + more(len(rows), ROWS_MAX, "holds", FILE) + words)


def _evidence(gathered: Gathered) -> str:
    found = [
        f"<li>topic {gap['topic']}, partition {gap['partition']}: deletion records between "
        f"sequence {gap['after_sequence']} and {gap['next_sequence']} are missing "
        f"(offsets {gap['first_offset']} to {gap['last_offset']})</li>"
        for gap in gathered.gaps[:ROWS_MAX]
    ]
    if gathered.conflicts:
        found.append(
            f"<li>{gathered.conflicts} conflicting deletion records; the first is used</li>"
        )
    return section("Evidence", f"<ul>{''.join(found)}</ul>") if found else ""


def _footer(frozen: FrozenRetention) -> str:
    partial = (
        ""
        if frozen.offsets.complete
        else "<p>Too many groups for one run: unread data of some groups is unknown.</p>"
    )
    return (
        f"<footer>{partial}<p>Computed from a snapshot of the inputs, "
        f"<code>{frozen.sha256}</code>. The same inputs always give identical files. All rows are "
        "in retention.csv, retention.json and retention.parquet next to this page. Deletions are "
        "recorded by the partitions themselves.</p></footer>"
    )


def _ages_of(found: Mapping[str, object]) -> str:
    texts = [found[name] for name in ("age_min_ms", "age_p50_ms", "age_max_ms")]
    return " · ".join("-" if text is None else age_text(_number(text)) for text in texts)


def _items(value: object) -> list[Mapping[str, object]]:
    assert isinstance(value, list)
    return value


def _number(value: object) -> int:
    return int(str(value))


def _short(value: object) -> str:
    """A time to the minute."""
    return str(value)[:16].replace("T", " ") if value else "-"
