"""What of retention crosses HTTP. Whole numbers of 64 bits are strings."""

from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, PlainSerializer, WithJsonSchema

from api.db.tables.retention import RetentionRow
from api.http.resource import INT64_MAX, Int64, Timestamp
from api.jobs.inputs import ReportInputs
from api.jobs.result import PublishedFile, Sha256

PARTITION_MAX: Final = (1 << 31) - 1
# A limit as the node has it: -1 is unlimited.
SignedLimit = Annotated[
    int,
    Field(ge=-1, le=INT64_MAX),
    PlainSerializer(str, return_type=str),
    WithJsonSchema({"type": "string", "pattern": "^(-1|[0-9]+)$"}),
]
# A record that is younger than its deletion: a clock went back in between.
SignedAge = Annotated[
    int,
    Field(ge=-INT64_MAX, le=INT64_MAX),
    PlainSerializer(str, return_type=str),
    WithJsonSchema({"type": "string", "pattern": "^-?[0-9]+$"}),
]
Cause = Literal["time", "size", "purge"]
Horizon = Literal["now", "1h", "24h", "7d"]
Violation = Literal[
    "OVER_RETAINED",
    "UNDER_RETAINED",
    "POLICY_MISMATCH",
    "UNBOUNDED",
    "CLOCK_SKEW",
    "UNREAD_DELETED",
    "UNREAD_AT_RISK",
]


class PolicyBody(BaseModel):
    """The retention limits of a topic since a change; -1 means unlimited. ``sources`` shows for
    each limit whether it is set by the topic or by default.
    """

    topic_id: str
    generation: int
    changed_at: Timestamp
    by: str
    retention_ms: SignedLimit
    retention_bytes: SignedLimit
    min_retention_ms: Int64
    segment_bytes: Int64
    sources: dict[str, str]


class HeldBody(BaseModel):
    """A legal hold in any state."""

    id: str
    topic_id: str
    partition: int | None
    from_offset: Int64 | None
    case_id: str
    owner: str
    reason: str
    state: str
    created_at: Timestamp
    activated_at: Timestamp | None
    released_at: Timestamp | None
    released_by: str | None


class RetentionInputs(ReportInputs):
    """The inputs of a retention run: names, all policies and their history, holds, and the time for
    which the report is computed.
    """

    as_of: Timestamp
    policies: list[PolicyBody]
    holds: list[HeldBody]


class RetentionTotals(BaseModel):
    """The totals of a retention report."""

    model_config = ConfigDict(extra="allow")

    rows: Int64
    deleted_bytes: Int64
    deleted_records: Int64
    live_bytes: Int64


class RetentionResult(BaseModel):
    """The manifest that a retention job publishes. Further members are stored unchanged."""

    model_config = ConfigDict(extra="allow")

    kind: Literal["retention"]
    input_sha256: Sha256
    as_of: Timestamp
    path: Annotated[str, Field(max_length=1024)]
    files: Annotated[list[PublishedFile], Field(min_length=1, max_length=64)]
    totals: RetentionTotals


class RetentionItem(BaseModel):
    """A row of the report. With a ``cause``, it describes a deletion, otherwise the current state
    of a partition. ``violation`` and ``hold_id`` can contain several words. ``age_at_deletion_ms``
    is negative if the clock was set back between an append and its deletion.
    """

    topic: str
    topic_id: str
    partition: Annotated[int, Field(ge=0, le=PARTITION_MAX), WithJsonSchema({"type": "integer"})]
    policy_source: str
    retention_ms: SignedLimit | None = None
    retention_bytes: SignedLimit | None = None
    live_bytes: Int64
    oldest_at: Timestamp | None = None
    deleted_bytes: Int64
    deleted_records: Int64
    first_offset: Int64
    last_offset: SignedLimit
    cause: str
    deleted_at: Timestamp | None = None
    age_at_deletion_ms: SignedAge | None = None
    next_deletion_at: Timestamp | None = None
    hold_id: str
    violation: str

    @classmethod
    def of(cls, row: RetentionRow) -> "RetentionItem":
        """The body of a row."""
        return cls(**{name: getattr(row, name) for name in cls.model_fields})


class ReportedSum(BaseModel):
    """Figures in a document of a report."""

    bytes: Int64
    records: Int64


class ReportedDeletion(ReportedSum):
    """Data deleted for one cause."""

    cause: str
    trims: Int64


class ReportedAge(ReportedSum):
    """What lives, of one age."""

    bucket: str


class ReportedDay(ReportedSum):
    """What goes on a day."""

    day: Annotated[int, Field(ge=0)]


class ReportedRule(BaseModel):
    """A rule that is broken."""

    code: str


class ReportedTopic(BaseModel):
    """Of an entry of `topics` in retention.json, what sums and lists are made of."""

    topic_id: Annotated[str, Field(min_length=1, max_length=40)]
    live_bytes: Int64
    live_records: Int64
    hold_blocked_bytes: Int64
    deleted: list[ReportedDeletion] = []
    ages: list[ReportedAge] = []
    schedule: list[ReportedDay] = []
    violations: list[ReportedRule] = []
    upcoming: Annotated[dict[Horizon, ReportedSum], Field(min_length=4)]


class DeletedSum(BaseModel):
    """Data deleted for one cause."""

    cause: str
    trims: Int64
    bytes: Int64
    records: Int64


class AgeSum(BaseModel):
    """Stored bytes and records of one age range, by append time."""

    bucket: str
    bytes: Int64
    records: Int64


class DueSum(BaseModel):
    """Upcoming deletions within a horizon: now, 1h, 24h, 7d."""

    within: str
    bytes: Int64
    records: Int64


class DueDay(BaseModel):
    """Upcoming deletions on a day; 0 is the day of the report."""

    day: int
    bytes: Int64
    records: Int64


class RetentionSummary(BaseModel):
    """Totals over the requested topics that the caller can access."""

    topics: int
    live_bytes: Int64
    live_records: Int64
    hold_blocked_bytes: Int64
    deleted: list[DeletedSum]
    upcoming: list[DueSum]
    ages: list[AgeSum]
    schedule: list[DueDay]
    violations: dict[str, int]


class RetentionBody(BaseModel):
    """The latest retention report. Without ``run_id``, there is no report yet. ``topic`` is present
    if one topic was requested: its policy and history, deletions by cause and age, upcoming
    deletions by day, holds and violations.
    """

    run_id: str | None = None
    input_sha256: str | None = None
    as_of: str | None = None
    computed_at: Timestamp | None = None
    summary: RetentionSummary
    topic: dict[str, JsonValue] | None = None
    items: list[RetentionItem]
    next_page_token: str | None = None


class TopicReport(BaseModel):
    """A topic in the latest retention report: an entry of `topics` in retention.json."""

    topic_id: str
    report: dict[str, JsonValue]


class DayOfDeletions(BaseModel):
    """Data deleted on a day (UTC) for one cause."""

    day: str
    cause: str
    trims: Int64
    bytes: Int64
    records: Int64


class Deletions(BaseModel):
    """The days with deletions, oldest first. Without ``run_id``, there is no report yet."""

    run_id: str | None = None
    days: list[DayOfDeletions]
