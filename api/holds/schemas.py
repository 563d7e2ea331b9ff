"""What of a legal hold crosses HTTP. 64-bit numbers are decimal strings."""

import re
from dataclasses import dataclass
from typing import Annotated, Final

from fastapi import Query
from pydantic import AfterValidator, BaseModel, Field, WithJsonSchema

from api.db.tables.holds import LegalHold
from api.db.tables.work import ResourceStatus
from api.http.pagination import Filter
from api.http.resource import BLANK, UNSEEN, Command, ConditionBody, Int64, Timestamp, etag
from api.http.routing import IdFilter
from api.reconcile.status import condition_bodies
from api.topics.schemas import PartitionIndex

CASE_CHARACTERS_MAX: Final = 128
REASON_CHARACTERS_MAX: Final = 1024
_NEVER: Final = rf"\u0000-\u001f{UNSEEN}"
SAID: Final = rf"^[^{_NEVER}]*[^{_NEVER}{BLANK}][^{_NEVER}]*$"


def _said(text: str) -> str:
    """A case and a reason are shown in reports and lists: one line, and something in it."""
    if re.fullmatch(SAID, text) is None:
        raise ValueError("must be one line of text that can be seen, and not blank")
    return text.strip()


Said = Annotated[str, AfterValidator(_said)]
Case = Annotated[Said, Field(max_length=CASE_CHARACTERS_MAX, json_schema_extra={"pattern": SAID})]
Reason = Annotated[
    Said, Field(max_length=REASON_CHARACTERS_MAX, json_schema_extra={"pattern": SAID})
]
FromOffset = Annotated[Int64, WithJsonSchema({"type": "string", "pattern": "^[0-9]{1,18}$"})]


CaseFilter = Annotated[
    str, Query(max_length=CASE_CHARACTERS_MAX, description="Only holds of this case.")
]
StateFilter = Annotated[str, Query(max_length=16, description="Only holds in this state.")]


class LegalHoldCreate(Command):
    """A new legal hold. Without ``partition``, it applies to all partitions, including future ones;
    without ``from_offset``, to all records.
    """

    topic_id: str = Field(max_length=40)
    partition: PartitionIndex | None = None
    from_offset: FromOffset | None = None
    case_id: Case
    reason: Reason


class HeldPartition(BaseModel):
    """A partition as last observed. ``missing``: it has not applied the hold yet, so retention can
    still delete records there. ``held_bytes``: the bytes that only its holds keep.
    """

    index: int
    missing: bool
    held_from: Int64 | None = None
    held_bytes: Int64 = 0


class LegalHoldStatus(BaseModel):
    """The observed state. The hold is in force if the condition ``Held`` is True for the current
    generation.
    """

    conditions: list[ConditionBody]
    observed_generation: int
    missing_partitions: list[int]
    partitions: list[HeldPartition]


class LegalHoldBody(BaseModel):
    """A legal hold. ``state`` is an open set: PROPAGATING, ACTIVE, RELEASING, RELEASED. The hold is
    in force while it is ACTIVE; a release is applied to one partition after another.
    """

    id: str
    organization_id: str
    project_id: str
    topic_id: str
    topic: str
    partition: int | None = None
    from_offset: Int64 | None = None
    case_id: str
    reason: str
    state: str
    generation: int
    etag: str
    created_at: Timestamp
    created_by: str
    activated_at: Timestamp | None = None
    release_wished_at: Annotated[Timestamp | None, Field(title="Release Requested At")] = None
    released_at: Timestamp | None = None
    released_by: str | None = None
    status: LegalHoldStatus

    @classmethod
    def of(cls, row: LegalHold, topic: str, status: ResourceStatus | None) -> "LegalHoldBody":
        """The body of a row, its topic as ``stream/topic``, and what was found."""
        found = status.detail.get("partitions") if status is not None else None
        rows = found if isinstance(found, list) else []
        held = [HeldPartition.model_validate(each) for each in rows]
        return cls(
            id=row.id,
            organization_id=row.org_id,
            project_id=row.project_id,
            topic_id=row.topic_id,
            topic=topic,
            partition=row.partition,
            from_offset=row.from_offset,
            case_id=row.case_id,
            reason=row.reason,
            state=row.state,
            generation=row.revision,
            etag=etag(row.revision),
            created_at=row.created_at,
            created_by=row.created_by,
            activated_at=row.activated_at,
            release_wished_at=row.release_wished_at,
            released_at=row.released_at,
            released_by=row.released_by,
            status=LegalHoldStatus(
                conditions=condition_bodies(status),
                observed_generation=status.observed_generation if status else 0,
                missing_partitions=[each.index for each in held if each.missing],
                partitions=held,
            ),
        )


@dataclass(frozen=True, slots=True)
class LegalHoldFilter(Filter):
    """Which holds a list holds."""

    topic_id: IdFilter = ""
    case_id: CaseFilter = ""
    state: StateFilter = ""
