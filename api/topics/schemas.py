"""What of a topic crosses HTTP. 64-bit numbers are decimal strings; `unlimited` is a word, not
-1."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    JsonValue,
    PlainSerializer,
    StrictBool,
    StrictInt,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError

from api.db.tables.topics import Topic
from api.db.tables.work import ResourceStatus
from api.http.pagination import Filter
from api.http.resource import (
    Annotations,
    Command,
    ConditionBody,
    CreateCommand,
    DeletableBody,
    DisplayName,
    Int64,
    Labels,
    Timestamp,
    TopicName,
    deletion_members,
    shared_members,
)
from api.http.routing import IdFilter, NameFilter
from api.reconcile.status import condition_bodies
from api.topics.spec import (
    SEGMENT_BYTES_MAX,
    SEGMENT_BYTES_MIN,
    EffectiveSpec,
    effective,
    in_words_of_today,
)


def _whole(value: object) -> object:
    """A number of a spec is written as one: ``true`` is not 1, and ``4.0`` is not 4."""
    if isinstance(value, bool | float):
        raise ValueError("must be a whole number")
    return value


Whole = Annotated[Int64, BeforeValidator(_whole)]
Limit = Annotated[
    Whole | Literal["unlimited"],
    PlainSerializer(str, return_type=str),
    WithJsonSchema({"type": "string", "pattern": "^([0-9]+|unlimited)$"}),
]


def _not_zero(limit: int | str) -> int | str:
    """Refuses 0, which could mean "keep nothing" or "no limit"."""
    if limit == 0:
        raise PydanticCustomError(
            "limit_zero", 'must be 1 or more; write "unlimited" to keep everything'
        )
    return limit


WishedLimit = Annotated[
    Limit,
    AfterValidator(_not_zero),
    WithJsonSchema({"type": "string", "pattern": "^([1-9][0-9]*|unlimited)$"}),
]
SegmentBytes = Annotated[Whole, Field(ge=SEGMENT_BYTES_MIN, le=SEGMENT_BYTES_MAX)]
Codec = Literal["none", "lz4", "zstd"]


class TopicSpec(Command):
    """The desired state. An absent member has its default: see ``status.effective``. ``paused``:
    reconciliation is paused. ``managed`` false: workers observe the topic but do not change
    it."""

    partitions: StrictInt | None = Field(default=None, ge=1, le=1024)
    replication_factor: Annotated[Literal[1, 3, 5], BeforeValidator(_whole)] | None = None
    retention_ms: WishedLimit | None = None
    retention_bytes: WishedLimit | None = None
    min_retention_ms: Whole | None = None
    segment_bytes: SegmentBytes | None = None
    codec: Codec | None = None
    max_message_bytes: StrictInt | None = Field(default=None, ge=1024, le=8 * 1024 * 1024)
    deletion_protection: StrictBool | None = None
    paused: StrictBool | None = None
    managed: StrictBool | None = None


class TopicCreate(CreateCommand):
    """A new topic. ``stream`` is the name of a stream of the project. Default: `default`."""

    name: TopicName
    stream: str | None = Field(default=None, max_length=63)
    stream_id: str | None = Field(default=None, max_length=40)
    project_id: str | None = Field(default=None, max_length=40)
    spec: TopicSpec = TopicSpec()


class TopicPatch(Command):
    """A merge patch: absent members stay unchanged, null resets a member. Members set by the server
    are ignored, so a body can be read, edited and sent back. Names and parents cannot change.
    """

    display_name: DisplayName | None = None
    labels: dict[str, str | None] | None = None
    annotations: dict[str, str | None] | None = None
    spec: TopicSpec | None = None
    name: str | None = None
    project_id: str | None = None
    stream_id: str | None = None
    stream: str | None = None
    cluster_id: str | None = None
    id: JsonValue = None
    organization_id: JsonValue = None
    status: JsonValue = None
    generation: JsonValue = None
    etag: JsonValue = None
    created_at: JsonValue = None
    updated_at: JsonValue = None
    created_by: JsonValue = None
    deleted_at: JsonValue = None
    deleted_by: JsonValue = None
    force_reason: JsonValue = None


def _integral(value: object) -> object:
    """JSON has one kind of number: 4.0 is the integer 4 to a reader of the schema."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


PartitionIndex = Annotated[StrictInt, Field(ge=0, le=1023), BeforeValidator(_integral)]


class PurgePlace(Command):
    """A partition, and its first offset to keep."""

    index: PartitionIndex
    before_offset: Annotated[
        Whole,
        Field(ge=1),
        WithJsonSchema({"type": "string", "pattern": "^[1-9][0-9]{0,17}$"}),
    ]


class TopicPurgeCommand(Command):
    """The records to delete. Offsets are absolute, so a repeated request deletes nothing more."""

    partitions: list[PurgePlace] = Field(min_length=1, max_length=1024)


class LabelSet(BaseModel):
    """Labels and annotations after a merge, held to the same rules as at creation."""

    labels: Labels
    annotations: Annotations


class PartitionBody(BaseModel):
    """A partition as reported by a node. ``state``: READY, RECOVERING, DAMAGED, SEALED, OP_UNKNOWN.
    The figures are those of ``observed_at``; with `live=true`, they are current if the node
    responded in time.
    """

    index: int
    primary: str
    replicas: list[str]
    start_offset: Int64
    end_offset: Int64
    bytes: Int64
    state: str
    reason: str = ""
    observed_at: Timestamp | None = None


class EffectiveBody(BaseModel):
    """The spec with every default filled in."""

    partitions: int
    replication_factor: int
    retention_ms: Limit
    retention_bytes: Limit
    min_retention_ms: Int64
    segment_bytes: Int64
    codec: str
    max_message_bytes: int
    deletion_protection: bool
    paused: bool
    managed: bool


class TopicStatus(BaseModel):
    """The observed state. A change is applied if observed_generation equals generation and Ready is
    True.
    """

    conditions: list[ConditionBody]
    observed_generation: int
    effective: EffectiveBody
    partitions: list[PartitionBody]


class TopicBody(DeletableBody):
    """A topic: its spec and status."""

    project_id: str
    cluster_id: str
    stream_id: str
    stream: str
    spec: TopicSpec
    status: TopicStatus

    @classmethod
    def of(cls, row: Topic, stream: str, status: ResourceStatus | None) -> "TopicBody":
        """The body of a row, the name of its stream, and what was found."""
        found = status.detail.get("partitions") if status is not None else None
        observed_at = status.updated_at if status is not None else None
        partitions = [
            {**each, "observed_at": observed_at}
            for each in (found if isinstance(found, list) else [])
            if isinstance(each, dict)
        ]
        return cls.model_validate(
            {
                **shared_members(row),
                **deletion_members(row),
                "project_id": row.project_id,
                "cluster_id": row.cluster_id,
                "stream_id": row.stream_id,
                "stream": stream,
                "spec": in_words_of_today(row.spec),
                "status": {
                    "conditions": condition_bodies(status),
                    "observed_generation": status.observed_generation if status else 0,
                    "effective": effective_members(effective(row.spec)),
                    "partitions": partitions,
                },
            }
        )


def effective_members(spec: EffectiveSpec) -> dict[str, JsonValue]:
    """The members of :class:`EffectiveBody`; a missing limit is the word `unlimited`."""
    return {
        "partitions": spec.partitions,
        "replication_factor": spec.replication_factor,
        "retention_ms": "unlimited" if spec.retention_ms is None else spec.retention_ms,
        "retention_bytes": "unlimited" if spec.retention_bytes is None else spec.retention_bytes,
        "min_retention_ms": spec.min_retention_ms,
        "segment_bytes": spec.segment_bytes,
        "codec": spec.codec,
        "max_message_bytes": spec.max_message_bytes,
        "deletion_protection": spec.deletion_protection,
        "paused": spec.paused,
        "managed": spec.managed,
    }


@dataclass(frozen=True, slots=True)
class TopicFilter(Filter):
    """Which topics a list holds. ``stream`` is a stream's name."""

    name: NameFilter = ""
    stream: NameFilter = ""
    stream_id: IdFilter = ""
    project_id: IdFilter = ""
    cluster_id: IdFilter = ""
