"""`headrace retention report|plan`: past and upcoming deletions, from the latest report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import click

from headrace.cli.commands.completion import topic_names
from headrace.cli.main import Tree
from headrace.cli.messages import count_of, duration_of, in_words_typed
from headrace.cli.options import Verb, client, printer
from headrace.cli.output import Column, Row, note, path

DAYS_MAX = 30
_CAUSES = ("time", "size", "purge")
_TYPED = {"?cause": "--cause", "?violation": "--violation"}
_NO_RUN = "No retention report has run yet. Run one with: headrace report run retention --wait"


def _age(row: Row) -> object:
    return duration_of(path("age_at_deletion_ms")(row))


def _last(row: Row) -> object:
    """The last offset; of a partition without records there is none."""
    first, last = path("first_offset")(row), path("last_offset")(row)
    return "empty" if last != "" and int(str(last)) < int(str(first)) else last


COLUMNS = (
    Column("topic", path("topic")),
    Column("partition", path("partition"), right=True),
    Column("cause", path("cause")),
    Column("deleted", path("deleted_at")),
    Column("bytes", path("deleted_bytes"), right=True),
    Column("records", path("deleted_records"), right=True),
    Column("first", path("first_offset"), right=True),
    Column("last", _last, right=True),
    Column("stored bytes", path("live_bytes"), right=True),
    Column("next", path("next_deletion_at")),
    Column("violation", path("violation")),
    Column("age", _age, wide=True, right=True),
    Column("hold", path("hold_id"), wide=True),
    Column("policy", path("policy_source"), wide=True),
)
_PLAN = (
    Column("until", path("until")),
    Column("bytes", path("bytes"), right=True),
    Column("records", path("records"), right=True),
    Column("remaining bytes", path("live_bytes"), right=True),
)


@click.group(cls=Tree)
def retention() -> None:
    """Show past and upcoming deletions."""


@retention.command(cls=Verb)
@click.option("--topic", default="", help="Only this topic.", shell_complete=topic_names)
@click.option("--cause", type=click.Choice(_CAUSES), help="Only deletions with this cause.")
@click.option("--violation", default="", metavar="RULE", help="Only violations of this rule.")
def report(topic: str, cause: str | None, violation: str) -> None:
    """Show all deletions and partitions in the latest retention report."""
    with client() as c, in_words_typed(_TYPED):
        found = c.admin.retention(topic=topic, cause=cause or "", violation=violation)
    printer().listing(found, _rows(found, "items"), COLUMNS, name="topic")
    if not found.get("run_id"):
        note(_NO_RUN)
        return
    for one in _rows(path("summary")(found), "deleted"):
        size, trims = int(str(one["bytes"])), int(str(one["trims"]))
        note(
            f"Deleted by {one['cause']}: {count_of(size, 'byte')} in {count_of(trims, 'deletion')}"
        )
    broken = path("summary", "violations")(found)
    for code, count in sorted(broken.items()) if isinstance(broken, Mapping) else ():
        note(f"{code}: {count}")
    note(f"As of {found.get('as_of')}")


@retention.command(cls=Verb)
@click.argument("topic", shell_complete=topic_names)
@click.option(
    "--days",
    type=click.IntRange(1, DAYS_MAX),
    default=7,
    show_default=True,
    help="Number of days to look ahead.",
)
def plan(topic: str, days: int) -> None:
    """Preview upcoming deletions.

    The preview uses the latest retention report and the write rate of the last day. It does not
    include holds or policies created after the report.
    """
    with client() as c:
        found = c.admin.retention(topic=topic)
    reported = found.get("topic")
    if not isinstance(reported, Mapping):
        printer().many([], _PLAN, name="until")
        note(_NO_RUN if not found.get("run_id") else f"The latest report does not include {topic}.")
        return
    rows = planned(reported, str(found["as_of"]), days)
    body: dict[str, object] = {
        "topic": reported.get("topic"),
        "topic_id": reported.get("topic_id"),
        "as_of": found["as_of"],
        "days": days,
        "items": rows,
    }
    printer().listing(body, rows, _PLAN, name="until")
    total = sum(int(str(row["bytes"])) for row in rows)
    due = f"{count_of(total, 'byte')} of {reported.get('topic')}"
    note(f"{due} will be deleted within {count_of(days, 'day')} (report of {found['as_of']})")
    if int(str(reported.get("hold_blocked_bytes") or 0)):
        kept = count_of(int(str(reported["hold_blocked_bytes"])), "byte")
        note(f"Legal holds keep {kept} beyond the retention policy: headrace hold list")
    note("Retention deletes whole segments, once the newest record of a segment has expired.")


def planned(report: Row, as_of: str, days: int) -> list[dict[str, object]]:
    """Deletions due by the end of each day, and the bytes left then; overdue ones first."""
    begin = datetime.fromisoformat(as_of)
    left = int(str(report["live_bytes"]))
    rows: list[dict[str, object]] = []
    for due in _rows(report, "schedule"):
        day = int(str(due["day"]))
        if day > days:
            break
        left -= int(str(due["bytes"]))
        moment = (begin + timedelta(days=day)).strftime("%Y-%m-%dT%H:%M:%SZ")
        rows.append(
            {
                "until": moment,
                "bytes": str(due["bytes"]),
                "records": str(due["records"]),
                "live_bytes": str(left),
            }
        )
    return rows


def _rows(body: object, name: str) -> Sequence[Row]:
    found = body.get(name) if isinstance(body, Mapping) else None
    return [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []
