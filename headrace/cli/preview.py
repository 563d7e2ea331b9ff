"""What a dry run prints: that nothing was changed, and each value before and after the change.

On stdout, people get the differences as a table, and programs the body that REST would answer with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from headrace.cli.messages import count_of
from headrace.cli.options import printer
from headrace.cli.output import Column, Name, Row, note, path
from headrace.cli.retention_plan import going
from headrace.cli.topic_spec import differences

_CHANGES = (
    Column("setting", path("setting")),
    Column("before", path("before")),
    Column("after", path("after")),
)
_STARTS = (
    Column("partition", path("partition"), right=True),
    Column("start before", path("before"), right=True),
    Column("start after", path("after"), right=True),
)


def preview_change(found: Row, altered: Row, columns: Sequence[Column], name: Name) -> None:
    """A dry run of `topic alter`: the settings that would change, and the loss of records."""
    note(f"Dry run: the topic {found['name']} was not changed.")
    changes = differences(found, altered)
    _show(changes, _CHANGES, altered, columns, name)
    if not changes:
        note("No settings would change.")
    lost = going(altered)
    note_deleted("Would be deleted", lost)
    if not lost:
        note("No records would be deleted now.")


def preview_purge(
    found: Row, planned: Row, limits: Mapping[int, int], columns: Sequence[Column], name: Name
) -> None:
    """A dry run of `topic purge`: the first offset of each partition, and the loss of records."""
    note(f"Dry run: no records of the topic {found['name']} were deleted.")
    _show(list(_starts(found, limits)), _STARTS, planned, columns, name)
    note(f"Would be deleted: {purge_loss(planned)}.")
    warnings = path("plan", "warnings")(planned)
    for line in warnings if isinstance(warnings, list) else []:
        note(f"  {line}")


def purge_loss(planned: Row) -> str:
    """The records that a purge would delete, from the plan of its dry run."""
    records = str(path("plan", "data_loss", "records")(planned))
    size = path("plan", "data_loss", "bytes_estimate")(planned)
    return f"{count_of(int(records), 'record')}, about {size} bytes"


def note_deleted(title: str, lost: Sequence[str]) -> None:
    """The loss of records and its warnings, if there is any."""
    for number, line in enumerate(lost):
        note(f"{title}: {line}" if number == 0 else f"  {line}")


def _show(
    rows: Sequence[Row], shown: Sequence[Column], body: Row, columns: Sequence[Column], name: Name
) -> None:
    out = printer()
    if not out.for_people:
        out.one(body, columns, name=name)
    elif rows:
        out.many(rows, shown)


def _starts(found: Row, limits: Mapping[int, int]) -> Iterable[Row]:
    rows = path("status", "partitions")(found)
    for each in rows if isinstance(rows, list) else []:
        index, start = int(str(each["index"])), int(str(each["start_offset"]))
        if index in limits:
            yield {"partition": index, "before": start, "after": max(start, limits[index])}
