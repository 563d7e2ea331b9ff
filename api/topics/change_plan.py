"""What a change would do, for whoever asks with ``dry_run=true``. Figures are of the last look."""

from collections.abc import Mapping, Sequence
from typing import Final

from pydantic import JsonValue as Json
from sqlalchemy.orm import Session

from api.db.tables.topics import Topic
from api.reconcile.status import statuses

KEYS_MOVE: Final = (
    "Keys move: a record of a key that is in one partition now may go to another from here on, so "
    "the order of a key holds before and after the change and not across it."
)
GROUPS_GROW: Final = (
    "Every consumer group of the topic is given the new partitions; one that starts at latest does "
    "not see what is written to them before it has them."
)
UNREAD: Final = (
    "A group that has not read them continues at the new start; its consumers get an error, unless "
    "they use on_expired=skip."
)
GROWTH_WARNINGS: Final = (KEYS_MOVE, GROUPS_GROW)


def loss_of(session: Session, rows: Sequence[Topic]) -> dict[str, Json]:
    """The plan of a delete: how much of how many topics goes."""
    found = statuses(session, [row.id for row in rows])
    partitions = [
        each
        for status in found.values()
        for each in _list(status.detail.get("partitions"))
        if isinstance(each, dict)
    ]
    size = sum(int(str(each["bytes"])) for each in partitions)
    records = sum(
        int(str(each["end_offset"])) - int(str(each["start_offset"])) for each in partitions
    )
    return {
        "topics": len(rows),
        "data_loss": {"bytes": str(size), "records": str(records)},
        "warnings": [],
    }


def growth_of(before: int, after: int) -> dict[str, Json] | None:
    """The plan of a patch that adds partitions; None for any other."""
    if after <= before:
        return None
    return {
        "partitions": {"before": before, "after": after},
        "warnings": list(GROWTH_WARNINGS),
    }


def together(first: Mapping[str, Json], second: Mapping[str, Json]) -> dict[str, Json]:
    """One plan of two; both may warn."""
    warnings = [*_list(first.get("warnings")), *_list(second.get("warnings"))]
    return {**first, **second, "warnings": warnings}


def _list(value: Json | None) -> list[Json]:
    return value if isinstance(value, list) else []
