"""Names, policies, their history and legal holds of a run, as the control plane exported them.

Owns the shape of `GET /v1/report-runs/{id}/inputs` as far as the retention report uses it, and its
canonical bytes. Everything is computed for the time `as_of`: ages, what is due now, what will be.
It is part of the inputs, so that a run that is computed again says the same. Refuses to ask.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from headrace.evidence import canonical_json
from reports.errors import InputError
from reports.formats import text_of

UNLIMITED = -1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LIMITS = ("retention_ms", "retention_bytes", "min_retention_ms", "segment_bytes")
_NAMED = {
    "organizations": ("id", "name"),
    "projects": ("id", "organization_id", "name"),
    "streams": ("id", "project_id", "name"),
    "topics": ("id", "stream_id", "name"),
    "api_keys": ("id", "name"),
}
_HOLD = ("id", "topic_id", "case_id", "owner", "reason", "state", "created_at")
_HOLD_OPTIONAL = ("activated_at", "released_at", "released_by")
# A hold in one of these states keeps the node from trimming, or may still.
HOLDING = frozenset({"ACTIVE", "RELEASING"})


@dataclass(frozen=True, slots=True)
class Policy:
    """What a topic keeps, from one change on. Times in milliseconds, sizes in bytes, -1 unlimited.

    sources: limit: `topic` (its spec says so) or `default`. by: the key that made the change.
    """

    topic_id: str
    generation: int
    changed_us: int
    by: str
    retention_ms: int
    retention_bytes: int
    min_retention_ms: int
    segment_bytes: int
    sources: Mapping[str, str]

    @property
    def source(self) -> str:
        """Where the limits come from, in one word: `topic` as soon as it sets one of them."""
        limits = {self.sources.get(name) for name in ("retention_ms", "retention_bytes")}
        return "topic" if "topic" in limits else "default"

    @property
    def bounded(self) -> bool:
        """Whether anything is ever deleted."""
        return self.retention_ms != UNLIMITED or self.retention_bytes != UNLIMITED


@dataclass(frozen=True, slots=True)
class Hold:
    """A legal hold. partition None: all; from_offset: what lies below it may go."""

    id: str
    topic_id: str
    partition: int | None
    from_offset: int
    state: str
    document: Mapping[str, str]
    """case_id, owner, reason, created_at, activated_at, released_at, released_by; as they came."""

    def covers(self, partition: int) -> bool:
        """Whether it holds something of this partition of its topic now."""
        return self.partition in (None, partition) and self.state in HOLDING


@dataclass(frozen=True, slots=True)
class TopicName:
    """A topic and whose it is. Ids for what the export does not list."""

    name: str
    organization_id: str
    organization: str
    project_id: str
    project: str


@dataclass(frozen=True, slots=True)
class RetentionExport:
    """What of the control plane a retention report needs; `document` is what is archived."""

    document: dict[str, object]
    as_of_us: int
    topics: Mapping[str, TopicName]
    api_keys: Mapping[str, str]
    policies: tuple[Policy, ...]
    """The whole history, by topic and generation; the last one of a topic is in force."""
    holds: tuple[Hold, ...]

    def canonical(self) -> bytes:
        """The bytes that are archived and hashed."""
        return canonical_json(self.document)

    def in_force(self) -> dict[str, Policy]:
        """The present policy of every topic."""
        return {policy.topic_id: policy for policy in self.policies}

    def holds_by_topic(self) -> dict[str, list[Hold]]:
        """The holds of every topic that has any, in their order."""
        found: dict[str, list[Hold]] = {}
        for hold in self.holds:
            found.setdefault(hold.topic_id, []).append(hold)
        return found


def retention_export_of(answer: object) -> RetentionExport:
    """Check an answer and keep what is used. EXPORT_INVALID names the field that is missing."""
    root = _mapping(answer, "the export")
    rows = {name: _named(root, name, fields) for name, fields in _NAMED.items()}
    as_of = _text(root, "as_of", "the export")
    policies = sorted(map(_policy, _items(root, "policies")), key=_policy_order)
    holds = sorted(map(_hold, _items(root, "holds")), key=lambda hold: hold.id)
    return RetentionExport(
        document={
            **rows,
            "as_of": as_of,
            "policies": [policy_document(policy) for policy in policies],
            "holds": [hold_document(hold) for hold in holds],
        },
        as_of_us=instant_us(as_of, "as_of"),
        topics=_topics(rows),
        api_keys={row["id"]: row["name"] for row in rows["api_keys"]},
        policies=tuple(policies),
        holds=tuple(holds),
    )


def policy_document(policy: Policy) -> dict[str, object]:
    """A policy as it is archived and shown: whole numbers as strings."""
    return {
        "topic_id": policy.topic_id,
        "generation": str(policy.generation),
        "changed_at": instant_text(policy.changed_us),
        "by": policy.by,
        **{name: str(getattr(policy, name)) for name in _LIMITS},
        "sources": dict(sorted(policy.sources.items())),
    }


def hold_document(hold: Hold) -> dict[str, object]:
    """A hold as it is archived and shown."""
    return {
        "id": hold.id,
        "topic_id": hold.topic_id,
        "partition": None if hold.partition is None else str(hold.partition),
        "from_offset": str(hold.from_offset),
        "state": hold.state,
        **hold.document,
    }


def instant_us(text: str, what: str) -> int:
    """Microseconds since 1970 of an RFC 3339 time."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise _invalid(f"{what}, a time") from None
    if moment.tzinfo is None:
        raise _invalid(f"{what}, a time with its zone")
    return (moment - _EPOCH) // timedelta(microseconds=1)


def instant_text(moment_us: int) -> str:
    """RFC 3339, UTC, to the microsecond; written as in the rows."""
    return text_of("", _EPOCH + timedelta(microseconds=moment_us))


def _topics(rows: Mapping[str, Sequence[Mapping[str, str]]]) -> dict[str, TopicName]:
    organizations = {row["id"]: row["name"] for row in rows["organizations"]}
    projects = {row["id"]: row for row in rows["projects"]}
    streams = {row["id"]: row for row in rows["streams"]}
    found = {}
    for row in rows["topics"]:
        stream = streams.get(row["stream_id"], {})
        project = projects.get(stream.get("project_id", ""), {})
        organization_id = project.get("organization_id", "")
        found[row["id"]] = TopicName(
            name=f"{stream.get('name', row['stream_id'])}/{row['name']}",
            organization_id=organization_id,
            organization=organizations.get(organization_id, organization_id),
            project_id=stream.get("project_id", ""),
            project=project.get("name", stream.get("project_id", "")),
        )
    return found


def _policy_order(policy: Policy) -> tuple[str, int]:
    return policy.topic_id, policy.generation


def _policy(item: Mapping[str, object]) -> Policy:
    sources = _mapping(item.get("sources"), "sources of a policy")
    limits = [_whole(item, name, "a policy") for name in _LIMITS]
    return Policy(
        topic_id=_text(item, "topic_id", "a policy"),
        generation=_whole(item, "generation", "a policy"),
        changed_us=instant_us(_text(item, "changed_at", "a policy"), "changed_at of a policy"),
        by=_text(item, "by", "a policy"),
        retention_ms=limits[0],
        retention_bytes=limits[1],
        min_retention_ms=limits[2],
        segment_bytes=limits[3],
        sources={name: _text(sources, name, "sources of a policy") for name in sources},
    )


def _hold(item: Mapping[str, object]) -> Hold:
    texts = {name: _text(item, name, "a hold") for name in _HOLD}
    partition = item.get("partition")
    return Hold(
        id=texts["id"],
        topic_id=texts["topic_id"],
        partition=None if partition is None else _whole(item, "partition", "a hold"),
        from_offset=_whole(item, "from_offset", "a hold") if item.get("from_offset") else 0,
        state=texts["state"],
        document={name: texts[name] for name in _HOLD[2:] if name != "state"}
        | {name: str(item[name]) for name in _HOLD_OPTIONAL if item.get(name) is not None},
    )


def _named(root: Mapping[str, object], name: str, fields: tuple[str, ...]) -> list[dict[str, str]]:
    rows = [
        {field: _text(item, field, f"a row of {name}") for field in fields}
        for item in _items(root, name)
    ]
    return sorted(rows, key=lambda row: row["id"])


def _items(root: Mapping[str, object], name: str) -> list[Mapping[str, object]]:
    found = root.get(name)
    if not isinstance(found, list):
        raise _invalid(f"{name}, a list")
    return [_mapping(item, f"a row of {name}") for item in found]


def _whole(item: Mapping[str, object], field: str, place: str) -> int:
    value = item.get(field)
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise _invalid(f"{field} of {place}, a whole number")
    try:
        return int(value)
    except ValueError:
        raise _invalid(f"{field} of {place}, a whole number") from None


def _mapping(value: object, what: str) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise _invalid(what)
    return value


def _text(item: Mapping[str, object], field: str, place: str) -> str:
    value = item.get(field)
    if not isinstance(value, str):
        raise _invalid(f"{field} of {place}, a string")
    return value


def _invalid(what: str) -> InputError:
    return InputError(
        "EXPORT_INVALID",
        f"The policies and names of this run do not hold {what}.",
        "Control plane and reports must be of the same release: see docs/internals/reports.md.",
    )
