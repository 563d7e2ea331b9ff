"""The shape every resource shares: its body, its names.

A body is {id, name, display_name, parents, labels, annotations, spec, status, generation, etag,
times, created_by}. ``spec`` is the user's, ``status`` the server's. ``generation`` counts changes
of the spec; ``revision``, shown as the ETag, counts every change a user made and never a status
write, so that an edit is not refused because a status moved.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Final

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    WithJsonSchema,
)
from pydantic import JsonValue as Json

from api.db.columns import DeletableColumns, ResourceColumns
from api.http.errors import InvalidRequestError, PreconditionFailedError, Violation

LABELS_MAX: Final = 64
ANNOTATION_BYTES_MAX: Final = 64 * 1024
INT64_MAX: Final = (1 << 63) - 1
INT64_PATTERN: Final = re.compile(r"-?[0-9]{1,20}")
# Control characters, line and paragraph separators, and what turns the direction of what follows.
UNSEEN_PATTERN: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
UNSEEN: Final = r"\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069"
# What may stand in a text and shows nothing by itself: spaces, soft hyphens, joiners, fillers,
# variation selectors, empty braille. Listed, since JSON Schema knows no classes of characters.
BLANK: Final = (
    r"\s\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2060-\u2065"
    r"\u206a-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
)
BLANK_PATTERN: Final = re.compile(rf"[{BLANK}]")
SEEN_SCHEMA: Final = rf"^[^\u0000-\u001f{UNSEEN}]*$"
LINES_SCHEMA: Final = rf"^[^\u0000-\u0008\u000b\u000c\u000e-\u001f{UNSEEN}]*$"
LINES_PATTERN: Final = re.compile(r"[\t\n\r]")
NAME_PATTERN: Final = r"^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$"
TOPIC_NAME_PATTERN: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,248}$"
LABEL_KEY_PATTERN: Final = (
    r"^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$"
)


def format_instant(moment: datetime) -> str:
    """RFC 3339 in UTC with ``Z`` and always six digits of a second."""
    # Not strftime: it writes the year 999 with three digits.
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def etag(revision: int) -> str:
    """The strong validator of a revision, without its quotes."""
    return f"r{revision}"


def _int64(value: object) -> object:
    if isinstance(value, str) and INT64_PATTERN.fullmatch(value):
        return int(value)
    return value


def _not_reserved(name: str) -> str:
    if name.startswith(("_", "sys.")):
        raise ValueError("names that begin with _ or sys. belong to the system")
    return name


def _one_line(text: str) -> str:
    """Text for a list, a log and a terminal: it must not mislead the reader."""
    if UNSEEN_PATTERN.search(text):
        raise ValueError("must be one line, without control and direction characters")
    return text


def _plain(text: str) -> str:
    """Text of several lines."""
    if UNSEEN_PATTERN.search(LINES_PATTERN.sub("", text)):
        raise ValueError("must be text, without control and direction characters")
    return text


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("must be a time of the years 1 to 9999 in UTC") from None


def _annotation_size(annotations: Mapping[str, str]) -> Mapping[str, str]:
    if (
        sum(len(k.encode()) + len(v.encode()) for k, v in annotations.items())
        > ANNOTATION_BYTES_MAX
    ):
        raise ValueError(f"annotations hold at most {ANNOTATION_BYTES_MAX} bytes together")
    return annotations


def _label_prefix(labels: Mapping[str, str]) -> Mapping[str, str]:
    if any(key.startswith("system/") for key in labels):
        raise ValueError("labels under system/ belong to the system")
    return labels


Timestamp = Annotated[
    datetime,
    PlainSerializer(format_instant, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
Int64 = Annotated[
    int,
    BeforeValidator(_int64),
    Field(ge=0, le=INT64_MAX),
    PlainSerializer(str, return_type=str),
    WithJsonSchema({"type": "string", "pattern": "^[0-9]+$", "description": "decimal string"}),
]
# A validator hides a later one's constraints from the contract, so the schema is given in full.
Name = Annotated[
    str,
    AfterValidator(_not_reserved),
    Field(pattern=NAME_PATTERN),
    WithJsonSchema({"type": "string", "pattern": NAME_PATTERN}),
]
TopicName = Annotated[
    str,
    AfterValidator(_not_reserved),
    Field(pattern=TOPIC_NAME_PATTERN),
    WithJsonSchema({"type": "string", "pattern": TOPIC_NAME_PATTERN}),
]
DisplayName = Annotated[
    str,
    AfterValidator(_one_line),
    Field(max_length=63),
    WithJsonSchema({"type": "string", "pattern": SEEN_SCHEMA, "maxLength": 63}),
]
Moment = Annotated[AwareDatetime, AfterValidator(_in_utc)]
LabelKey = Annotated[str, Field(pattern=LABEL_KEY_PATTERN, max_length=317)]
LabelValue = Annotated[
    str,
    AfterValidator(_one_line),
    Field(max_length=63),
    WithJsonSchema({"type": "string", "pattern": SEEN_SCHEMA, "maxLength": 63}),
]
Labels = Annotated[
    dict[LabelKey, LabelValue], AfterValidator(_label_prefix), Field(max_length=LABELS_MAX)
]
AnnotationValue = Annotated[
    str, AfterValidator(_plain), WithJsonSchema({"type": "string", "pattern": LINES_SCHEMA})
]
Annotations = Annotated[
    dict[LabelKey, AnnotationValue],
    AfterValidator(_annotation_size),
    Field(max_length=LABELS_MAX),
]


class Command(BaseModel):
    """What a client sends: an unknown field is an error and is never ignored."""

    model_config = ConfigDict(extra="forbid")


class CreateCommand(Command):
    """The part that every create shares."""

    display_name: DisplayName = ""
    labels: Labels = Field(default_factory=dict)
    annotations: Annotations = Field(default_factory=dict)


class ResourceBody(BaseModel):
    """The part of a body that every resource shares."""

    id: str
    name: str
    display_name: str
    organization_id: str
    labels: dict[str, str]
    annotations: dict[str, str]
    generation: int
    etag: str
    created_at: Timestamp
    updated_at: Timestamp
    created_by: str


class DeletableBody(ResourceBody):
    """An object that can be deleted: when and by whom deletion was requested, why if forced."""

    deleted_at: Timestamp | None = None
    deleted_by: str | None = None
    force_reason: str | None = None


class ConditionBody(BaseModel):
    """One aspect of the state of an object, with the time of its last change."""

    type: str
    status: str
    reason: str
    message: str = ""
    observed_generation: int
    last_transition_at: Timestamp


class PlainSpec(BaseModel):
    """A spec without members."""


class PlainStatus(BaseModel):
    """The status of an object that needs no reconciliation."""

    conditions: list[ConditionBody] = []
    observed_generation: int = 1


def shared_members(row: ResourceColumns) -> dict[str, object]:
    """The members of :class:`ResourceBody` for a row."""
    return {
        "id": row.id,
        "name": row.name,
        "display_name": row.display_name,
        "organization_id": row.org_id,
        "labels": row.labels,
        "annotations": row.annotations,
        "generation": row.generation,
        "etag": etag(row.revision),
        "created_at": row.created_at,
        "updated_at": row.updated_at,
        "created_by": row.created_by,
    }


def deletion_members(row: DeletableColumns) -> dict[str, object]:
    """The members that :class:`DeletableBody` adds for a row."""
    return {
        "deleted_at": row.deleted_at,
        "deleted_by": row.deleted_by,
        "force_reason": row.force_reason,
    }


def body_json(body: BaseModel) -> dict[str, Json]:
    """A body as JSON; null means absent."""
    members: dict[str, Json] = body.model_dump(mode="json", exclude_none=True)
    return members


def revision_wanted(if_match: str | None, revision: int) -> int:
    """The revision an update may replace: the present one, or the one If-Match names.

    :raises PreconditionFailedError: If-Match names another revision than the present one.
    """
    if if_match is None or if_match.strip() == "*":
        return revision
    tags = [tag.strip() for tag in if_match.split(",")]
    if any(tag.startswith("W/") for tag in tags):
        raise InvalidRequestError(
            "If-Match takes strong tags only; this one begins with W/.",
            violations=[Violation("If-Match", "WEAK_TAG", "send the etag of the body in quotes")],
        )
    if f'"{etag(revision)}"' not in tags and etag(revision) not in tags:
        raise PreconditionFailedError(
            f"If-Match says {if_match}, the object is at {etag(revision)}.",
            hint="Read the object again, apply your change to what it is now, and send its etag.",
            etag=etag(revision),
        )
    return revision
