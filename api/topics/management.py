"""Management modes of topics: what is refused in each, and with which message.

``paused``: workers make no call about the topic. ``managed`` false: workers observe and change
nothing. Both are members of the spec: a caller who may change a topic may set them. A delete
and a purge are refused meanwhile instead of waiting: the mark of a delete is permanent, so it could
not wait for a change, and a purge is not carried out long after it was requested.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue as Json

from api.db.tables.topics import Topic
from api.http.errors import ConflictError
from api.topics.spec import EffectiveSpec, effective

STORED: Final = "The change is stored and will be applied once that is unset."
NOT_LATER: Final = "The purge is not stored: send it again once that is unset."


@dataclass(frozen=True, slots=True)
class ManagementMode:
    """Why a topic is not reconciled: the code, the word for it, and what to set to end it."""

    code: str
    word: str
    unset: str


PAUSED: Final = ManagementMode(code="TOPIC_PAUSED", word="paused", unset="spec.paused to false")
UNMANAGED: Final = ManagementMode(
    code="TOPIC_UNMANAGED", word="not managed", unset="spec.managed to true"
)


def management_mode(spec: EffectiveSpec) -> ManagementMode | None:
    """The mode in which nothing is changed on the cluster; None if the topic is reconciled.
    Pure."""
    if spec.paused:
        return PAUSED
    return None if spec.managed else UNMANAGED


def why_ended(why: ManagementMode) -> dict[str, Json]:
    """The error of an operation that will not be carried out now. Pure."""
    return _error(why, STORED)


def why_not_purged(why: ManagementMode) -> dict[str, Json]:
    """The error of a purge that was requested before the mode was set. Pure."""
    return _error(why, NOT_LATER)


def refuse_unreconciled(rows: Sequence[Topic], what: str) -> None:
    """Refuses what cannot be stored for later.

    :raises ConflictError: TOPIC_PAUSED or TOPIC_UNMANAGED; `topics` has their ids.
    """
    for why in (PAUSED, UNMANAGED):
        found = [row for row in rows if management_mode(effective(row.spec)) is why]
        if found:
            names = ", ".join(row.name for row in found[:10])
            raise ConflictError(
                f"{why.word.capitalize()}, so not {what}: {names}.",
                code=why.code,
                hint=f"Set {why.unset} first.",
                topics=[row.id for row in found[:100]],
            )


def _error(why: ManagementMode, what: str) -> dict[str, Json]:
    detail = f"The topic is {why.word}. {what}"
    return {"code": why.code, "detail": detail, "hint": f"Set {why.unset}."}
