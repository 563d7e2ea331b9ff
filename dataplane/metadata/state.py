"""What the metadata machine knows, as plain rows.

Owns the rows and their lookups. Numbers below 16 are reserved and the same in every cluster; all
others come from counters and are never given twice. Refuses to decide: rules live in `machine.py`,
bytes in `snapshot.py` and `tables.py`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from dataplane.engine.frames import NODE_KEY_PRINCIPAL, PartitionId
from dataplane.groups.membership import Group

NUMBERS_FIRST: Final = 16

SYSTEM_ORGANIZATION_NUMBER: Final = 1
SYSTEM_PROJECT_NUMBER: Final = 1
USAGE_TOPIC_NUMBER: Final = 1
RETENTION_TOPIC_NUMBER: Final = 2
SYSTEM_TOPICS: Final = {"_usage": USAGE_TOPIC_NUMBER, "_retention": RETENTION_TOPIC_NUMBER}

NODE_PRINCIPAL: Final = 2

# Deleted topics are remembered up to so many bytes, the latest deletions first.
DELETED_TOPICS_BYTES_MAX: Final = 512 * 1024
DELETED_TOPIC_BYTES: Final = 96

DEFAULT_PROJECT: Final = "default"
DEFAULT_STREAM: Final = "default"


class Fence(NamedTuple):
    """Who commands: compared in this order, higher wins."""

    db_epoch: int
    generation: int
    lease_token: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSpec:
    """A topic as the control plane specified it. Times in ms, -1 = unlimited."""

    topic_id: str
    organization_id: str
    project_id: str
    project: str
    stream: str
    topic: str
    partitions: int
    replication_factor: int
    retention_ms: int
    retention_bytes: int
    segment_bytes: int
    codec: str
    message_bytes_max: int
    retention_ms_min: int

    def name(self) -> str:
        """What people call it: stream/topic, or the bare name of a system topic."""
        return f"{self.stream}/{self.topic}" if self.stream else self.topic


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """One revision of a topic, identified by its created_revision.

    `closing_op` is the metadata op of the DeleteTopic in force, 0 while the topic is open;
    `force_reason` is not empty if that may give up what no partition can answer.
    """

    number: int
    created_revision: int
    spec: TopicSpec
    fence: Fence
    closing_op: int = 0
    force_reason: str = ""

    def is_closing(self) -> bool:
        """Being deleted: nothing is written to it any more."""
        return self.closing_op > 0

    def is_system(self) -> bool:
        """Made by the cluster itself: never metered, only the node publishes to it."""
        return self.number < NUMBERS_FIRST


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedTopic:
    """What is remembered of a topic that is gone: nothing older makes it again.

    `number` is 0 if it was deleted before it was ever put; `given_up` are the partitions whose seal
    or last metering window is missing, ascending.
    """

    topic_id: str
    number: int
    fence: Fence
    deleted_op: int
    given_up: tuple[int, ...] = ()
    project_id: str = ""
    name: str = ""

    def size_bytes(self) -> int:
        """What it counts against DELETED_TOPICS_BYTES_MAX: a bound, the same on every replica."""
        text = len(self.topic_id) + len(self.project_id) + len(self.name)
        return DELETED_TOPIC_BYTES + text + 2 * len(self.given_up)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """A hold on a topic, or on some of its partitions, from an offset on; also a released one.

    `intent_op` is the metadata op that last decided it, or which partitions it concerns;
    `is_confirmed` says that this intent is in the log of every one of them.
    """

    hold_id: str
    topic_id: str
    partitions: tuple[int, ...]
    from_offset: int
    fence: Fence
    intent_op: int
    is_active: bool
    is_confirmed: bool = False

    def concerns(self, partition: int) -> bool:
        """Does it hold, or did it, this partition?"""
        return not self.partitions or partition in self.partitions


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySpec:
    """A key as the control plane specified it.

    `secret_sha256` is a digest of 256 random bits: it opens nothing by itself.
    """

    key_id: str
    public_id: str
    secret_sha256: bytes
    organization_id: str
    project_id: str
    role: str
    expires_at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """A key and its principal number. Revoked is for ever."""

    principal: int
    spec: KeySpec
    fence: Fence
    active: bool


@dataclass(frozen=True, slots=True)
class Organization:
    """An organization's number."""

    number: int
    id: str


@dataclass(frozen=True, slots=True)
class Project:
    """A project's number; `name` is empty while only keys have spoken of it."""

    number: int
    id: str
    organization_id: str
    name: str


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the cluster."""

    id: str
    address: str


@dataclass(slots=True)
class Counters:
    """The next number of each kind."""

    organization: int = NUMBERS_FIRST
    project: int = NUMBERS_FIRST
    topic: int = NUMBERS_FIRST
    principal: int = NUMBERS_FIRST
    group: int = NUMBERS_FIRST
    session_max: int = 0


@dataclass(slots=True)
class State:
    """Everything. Dictionaries by id; the lookups below are derived and never stored."""

    op: int = 0
    cluster_id: str = ""
    bootstrap_op: int = 0
    counters: Counters = field(default_factory=Counters)
    nodes: dict[str, Node] = field(default_factory=dict)
    organizations: dict[str, Organization] = field(default_factory=dict)
    projects: dict[str, Project] = field(default_factory=dict)
    topics: dict[str, Topic] = field(default_factory=dict)
    keys: dict[str, ApiKey] = field(default_factory=dict)
    groups: dict[int, Group] = field(default_factory=dict)
    holds: dict[str, Hold] = field(default_factory=dict)
    # In the order of their deletion.
    deleted_topics: dict[str, DeletedTopic] = field(default_factory=dict)

    topic_ids_by_number: dict[int, str] = field(default_factory=dict)
    topic_ids_by_name: dict[tuple[str, str], str] = field(default_factory=dict)
    key_ids_by_principal: dict[int, str] = field(default_factory=dict)
    key_ids_by_public_id: dict[str, str] = field(default_factory=dict)
    group_numbers_by_name: dict[tuple[str, str], int] = field(default_factory=dict)
    deleted_ids_by_number: dict[int, str] = field(default_factory=dict)
    deleted_topics_bytes: int = 0

    def put_topic(self, topic: Topic) -> None:
        """Store a topic and its lookups; an earlier name of it is given up."""
        before = self.topics.get(topic.spec.topic_id)
        if before is not None:
            del self.topic_ids_by_name[(before.spec.project_id, before.spec.name())]
        self.topics[topic.spec.topic_id] = topic
        self.topic_ids_by_number[topic.number] = topic.spec.topic_id
        self.topic_ids_by_name[(topic.spec.project_id, topic.spec.name())] = topic.spec.topic_id

    def drop_topic(self, topic_id: str) -> None:
        """Take a topic and its lookups away; its name is free."""
        topic = self.topics.pop(topic_id)
        del self.topic_ids_by_number[topic.number]
        del self.topic_ids_by_name[(topic.spec.project_id, topic.spec.name())]

    def put_deleted(self, deleted: DeletedTopic) -> None:
        """Remember a topic that is gone; the earliest deletions make room.

        Ops rise, so the order of insertion is that of the deletions.
        """
        self._forget_deleted(deleted.topic_id)
        self.deleted_topics[deleted.topic_id] = deleted
        self.deleted_topics_bytes += deleted.size_bytes()
        if deleted.number:
            self.deleted_ids_by_number[deleted.number] = deleted.topic_id
        while self.deleted_topics_bytes > DELETED_TOPICS_BYTES_MAX:
            self._forget_deleted(next(iter(self.deleted_topics)))

    def _forget_deleted(self, topic_id: str) -> None:
        before = self.deleted_topics.pop(topic_id, None)
        if before is not None:
            self.deleted_topics_bytes -= before.size_bytes()
            self.deleted_ids_by_number.pop(before.number, None)

    def deleted_numbered(self, number: int) -> DeletedTopic | None:
        """The deleted topic of this number, while it is remembered."""
        topic_id = self.deleted_ids_by_number.get(number)
        return None if topic_id is None else self.deleted_topics[topic_id]

    def holds_of(self, topic_id: str) -> list[Hold]:
        """Every hold on a topic, released ones too, ascending by id."""
        return [row for _, row in sorted(self.holds.items()) if row.topic_id == topic_id]

    def put_key(self, key: ApiKey) -> None:
        """Store a key and its lookups."""
        before = self.keys.get(key.spec.key_id)
        if before is not None:
            self.key_ids_by_public_id.pop(before.spec.public_id, None)
        self.keys[key.spec.key_id] = key
        if key.principal:
            self.key_ids_by_principal[key.principal] = key.spec.key_id
        if key.active:
            self.key_ids_by_public_id[key.spec.public_id] = key.spec.key_id

    def put_group(self, group: Group) -> None:
        """Store a new group and its lookup."""
        self.groups[group.number] = group
        self.group_numbers_by_name[(group.project_id, group.name)] = group.number

    def topic_numbered(self, number: int) -> Topic | None:
        """The topic of this number."""
        topic_id = self.topic_ids_by_number.get(number)
        return None if topic_id is None else self.topics[topic_id]

    def topic_named(self, project_id: str, name: str) -> Topic | None:
        """The topic called stream/topic in a project."""
        topic_id = self.topic_ids_by_name.get((project_id, name))
        return None if topic_id is None else self.topics[topic_id]

    def group_named(self, project_id: str, name: str) -> Group | None:
        """The group of this name in a project."""
        number = self.group_numbers_by_name.get((project_id, name))
        return None if number is None else self.groups[number]

    def partitions_read(self, group: Group, also: Iterable[int] = ()) -> dict[int, int]:
        """Partition counts of every topic the group's members read, and of others."""
        numbers = set(also)
        for member in group.members.values():
            numbers.update(member.topics)
        counts: dict[int, int] = {}
        for number in sorted(numbers):
            topic = self.topic_numbered(number)
            if topic is not None:
                counts[number] = topic.spec.partitions
        return counts

    def organization_numbered(self, number: int) -> Organization | None:
        """The organization of this number."""
        return next((row for row in self.organizations.values() if row.number == number), None)

    def project_numbered(self, number: int) -> Project | None:
        """The project of this number."""
        return next((row for row in self.projects.values() if row.number == number), None)

    def project_named(self, organization_id: str, name: str) -> Project | None:
        """The project of an organization called so, or with this id."""
        for row in self.projects.values():
            if row.organization_id == organization_id and name in (row.name, row.id):
                return row
        return None

    def principal_id(self, number: int) -> str:
        """The id behind a principal number, for evidence: a key's id, or the node's own names."""
        if number == NODE_KEY_PRINCIPAL:
            return "node-key"
        if number == NODE_PRINCIPAL:
            return "node"
        return self.key_ids_by_principal.get(number, "")

    def topics_by_number(self) -> Iterator[Topic]:
        """Every topic, ascending."""
        for number in sorted(self.topic_ids_by_number):
            yield self.topics[self.topic_ids_by_number[number]]


def partitions_of(topic: Topic) -> list[PartitionId]:
    """Every partition of this revision of the topic, ascending."""
    return [
        PartitionId(topic.number, topic.created_revision, index)
        for index in range(topic.spec.partitions)
    ]
