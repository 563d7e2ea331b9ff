from headrace.wire import stream_pb2 as _stream_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Fence(_message.Message):
    __slots__ = ("db_epoch", "generation", "lease_token")
    DB_EPOCH_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    db_epoch: int
    generation: int
    lease_token: int
    def __init__(self, db_epoch: _Optional[int] = ..., generation: _Optional[int] = ..., lease_token: _Optional[int] = ...) -> None: ...

class ApplyRequest(_message.Message):
    __slots__ = ("fence", "put_topic", "put_key", "revoke_key", "delete_topic", "put_hold", "release_hold")
    FENCE_FIELD_NUMBER: _ClassVar[int]
    PUT_TOPIC_FIELD_NUMBER: _ClassVar[int]
    PUT_KEY_FIELD_NUMBER: _ClassVar[int]
    REVOKE_KEY_FIELD_NUMBER: _ClassVar[int]
    DELETE_TOPIC_FIELD_NUMBER: _ClassVar[int]
    PUT_HOLD_FIELD_NUMBER: _ClassVar[int]
    RELEASE_HOLD_FIELD_NUMBER: _ClassVar[int]
    fence: Fence
    put_topic: PutTopic
    put_key: PutKey
    revoke_key: RevokeKey
    delete_topic: DeleteTopic
    put_hold: PutHold
    release_hold: ReleaseHold
    def __init__(self, fence: _Optional[_Union[Fence, _Mapping]] = ..., put_topic: _Optional[_Union[PutTopic, _Mapping]] = ..., put_key: _Optional[_Union[PutKey, _Mapping]] = ..., revoke_key: _Optional[_Union[RevokeKey, _Mapping]] = ..., delete_topic: _Optional[_Union[DeleteTopic, _Mapping]] = ..., put_hold: _Optional[_Union[PutHold, _Mapping]] = ..., release_hold: _Optional[_Union[ReleaseHold, _Mapping]] = ...) -> None: ...

class DeleteTopic(_message.Message):
    __slots__ = ("topic_id", "force_reason")
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    FORCE_REASON_FIELD_NUMBER: _ClassVar[int]
    topic_id: str
    force_reason: str
    def __init__(self, topic_id: _Optional[str] = ..., force_reason: _Optional[str] = ...) -> None: ...

class PutTopic(_message.Message):
    __slots__ = ("topic_id", "organization_id", "project_id", "project", "stream", "topic", "partitions", "replication_factor", "retention_ms", "retention_bytes", "segment_bytes", "codec", "message_bytes_max", "retention_ms_min")
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    PROJECT_ID_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    REPLICATION_FACTOR_FIELD_NUMBER: _ClassVar[int]
    RETENTION_MS_FIELD_NUMBER: _ClassVar[int]
    RETENTION_BYTES_FIELD_NUMBER: _ClassVar[int]
    SEGMENT_BYTES_FIELD_NUMBER: _ClassVar[int]
    CODEC_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_BYTES_MAX_FIELD_NUMBER: _ClassVar[int]
    RETENTION_MS_MIN_FIELD_NUMBER: _ClassVar[int]
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
    def __init__(self, topic_id: _Optional[str] = ..., organization_id: _Optional[str] = ..., project_id: _Optional[str] = ..., project: _Optional[str] = ..., stream: _Optional[str] = ..., topic: _Optional[str] = ..., partitions: _Optional[int] = ..., replication_factor: _Optional[int] = ..., retention_ms: _Optional[int] = ..., retention_bytes: _Optional[int] = ..., segment_bytes: _Optional[int] = ..., codec: _Optional[str] = ..., message_bytes_max: _Optional[int] = ..., retention_ms_min: _Optional[int] = ...) -> None: ...

class PutKey(_message.Message):
    __slots__ = ("key_id", "public_id", "secret_sha256", "organization_id", "project_id", "role", "expires_at_us")
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    PUBLIC_ID_FIELD_NUMBER: _ClassVar[int]
    SECRET_SHA256_FIELD_NUMBER: _ClassVar[int]
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    PROJECT_ID_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_US_FIELD_NUMBER: _ClassVar[int]
    key_id: str
    public_id: str
    secret_sha256: bytes
    organization_id: str
    project_id: str
    role: str
    expires_at_us: int
    def __init__(self, key_id: _Optional[str] = ..., public_id: _Optional[str] = ..., secret_sha256: _Optional[bytes] = ..., organization_id: _Optional[str] = ..., project_id: _Optional[str] = ..., role: _Optional[str] = ..., expires_at_us: _Optional[int] = ...) -> None: ...

class RevokeKey(_message.Message):
    __slots__ = ("key_id",)
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    key_id: str
    def __init__(self, key_id: _Optional[str] = ...) -> None: ...

class PutHold(_message.Message):
    __slots__ = ("hold_id", "topic_id", "partitions", "from_offset")
    HOLD_ID_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    FROM_OFFSET_FIELD_NUMBER: _ClassVar[int]
    hold_id: str
    topic_id: str
    partitions: _containers.RepeatedScalarFieldContainer[int]
    from_offset: int
    def __init__(self, hold_id: _Optional[str] = ..., topic_id: _Optional[str] = ..., partitions: _Optional[_Iterable[int]] = ..., from_offset: _Optional[int] = ...) -> None: ...

class ReleaseHold(_message.Message):
    __slots__ = ("hold_id", "topic_id")
    HOLD_ID_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    hold_id: str
    topic_id: str
    def __init__(self, hold_id: _Optional[str] = ..., topic_id: _Optional[str] = ...) -> None: ...

class ApplyReply(_message.Message):
    __slots__ = ("metadata_op", "number", "created_revision", "changed", "deleted")
    METADATA_OP_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    CREATED_REVISION_FIELD_NUMBER: _ClassVar[int]
    CHANGED_FIELD_NUMBER: _ClassVar[int]
    DELETED_FIELD_NUMBER: _ClassVar[int]
    metadata_op: int
    number: int
    created_revision: int
    changed: bool
    deleted: bool
    def __init__(self, metadata_op: _Optional[int] = ..., number: _Optional[int] = ..., created_revision: _Optional[int] = ..., changed: bool = ..., deleted: bool = ...) -> None: ...

class DescribeRequest(_message.Message):
    __slots__ = ("topic_ids", "key_ids", "all", "groups")
    TOPIC_IDS_FIELD_NUMBER: _ClassVar[int]
    KEY_IDS_FIELD_NUMBER: _ClassVar[int]
    ALL_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    topic_ids: _containers.RepeatedScalarFieldContainer[str]
    key_ids: _containers.RepeatedScalarFieldContainer[str]
    all: bool
    groups: bool
    def __init__(self, topic_ids: _Optional[_Iterable[str]] = ..., key_ids: _Optional[_Iterable[str]] = ..., all: bool = ..., groups: bool = ...) -> None: ...

class DescribeReply(_message.Message):
    __slots__ = ("cluster_id", "node_id", "incarnation", "metadata_op", "topics", "keys", "holds", "node", "groups")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    METADATA_OP_FIELD_NUMBER: _ClassVar[int]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    HOLDS_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    node_id: str
    incarnation: int
    metadata_op: int
    topics: _containers.RepeatedCompositeFieldContainer[TopicStatus]
    keys: _containers.RepeatedCompositeFieldContainer[KeyStatus]
    holds: _containers.RepeatedCompositeFieldContainer[HoldStatus]
    node: NodeStatus
    groups: _containers.RepeatedCompositeFieldContainer[GroupStatus]
    def __init__(self, cluster_id: _Optional[str] = ..., node_id: _Optional[str] = ..., incarnation: _Optional[int] = ..., metadata_op: _Optional[int] = ..., topics: _Optional[_Iterable[_Union[TopicStatus, _Mapping]]] = ..., keys: _Optional[_Iterable[_Union[KeyStatus, _Mapping]]] = ..., holds: _Optional[_Iterable[_Union[HoldStatus, _Mapping]]] = ..., node: _Optional[_Union[NodeStatus, _Mapping]] = ..., groups: _Optional[_Iterable[_Union[GroupStatus, _Mapping]]] = ...) -> None: ...

class NodeStatus(_message.Message):
    __slots__ = ("version", "shards", "started_us", "warning", "fetched_bytes")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SHARDS_FIELD_NUMBER: _ClassVar[int]
    STARTED_US_FIELD_NUMBER: _ClassVar[int]
    WARNING_FIELD_NUMBER: _ClassVar[int]
    FETCHED_BYTES_FIELD_NUMBER: _ClassVar[int]
    version: str
    shards: int
    started_us: int
    warning: str
    fetched_bytes: int
    def __init__(self, version: _Optional[str] = ..., shards: _Optional[int] = ..., started_us: _Optional[int] = ..., warning: _Optional[str] = ..., fetched_bytes: _Optional[int] = ...) -> None: ...

class GroupStatus(_message.Message):
    __slots__ = ("group", "organization_id", "project_id", "name", "state", "topic_ids")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    PROJECT_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    TOPIC_IDS_FIELD_NUMBER: _ClassVar[int]
    group: int
    organization_id: str
    project_id: str
    name: str
    state: str
    topic_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, group: _Optional[int] = ..., organization_id: _Optional[str] = ..., project_id: _Optional[str] = ..., name: _Optional[str] = ..., state: _Optional[str] = ..., topic_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class HoldStatus(_message.Message):
    __slots__ = ("hold_id", "topic_id", "partitions", "from_offset", "active", "confirmed", "intent_op", "fence")
    HOLD_ID_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    FROM_OFFSET_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_FIELD_NUMBER: _ClassVar[int]
    CONFIRMED_FIELD_NUMBER: _ClassVar[int]
    INTENT_OP_FIELD_NUMBER: _ClassVar[int]
    FENCE_FIELD_NUMBER: _ClassVar[int]
    hold_id: str
    topic_id: str
    partitions: _containers.RepeatedScalarFieldContainer[int]
    from_offset: int
    active: bool
    confirmed: bool
    intent_op: int
    fence: Fence
    def __init__(self, hold_id: _Optional[str] = ..., topic_id: _Optional[str] = ..., partitions: _Optional[_Iterable[int]] = ..., from_offset: _Optional[int] = ..., active: bool = ..., confirmed: bool = ..., intent_op: _Optional[int] = ..., fence: _Optional[_Union[Fence, _Mapping]] = ...) -> None: ...

class TopicStatus(_message.Message):
    __slots__ = ("topic_id", "number", "created_revision", "spec", "fence", "partitions", "closing")
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    CREATED_REVISION_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    FENCE_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    CLOSING_FIELD_NUMBER: _ClassVar[int]
    topic_id: str
    number: int
    created_revision: int
    spec: PutTopic
    fence: Fence
    partitions: _containers.RepeatedCompositeFieldContainer[PartitionStatus]
    closing: bool
    def __init__(self, topic_id: _Optional[str] = ..., number: _Optional[int] = ..., created_revision: _Optional[int] = ..., spec: _Optional[_Union[PutTopic, _Mapping]] = ..., fence: _Optional[_Union[Fence, _Mapping]] = ..., partitions: _Optional[_Iterable[_Union[PartitionStatus, _Mapping]]] = ..., closing: bool = ...) -> None: ...

class PartitionStatus(_message.Message):
    __slots__ = ("index", "primary", "replicas", "log_start", "high_watermark", "log_end", "bytes", "state", "reason", "cumulative_bytes", "held", "held_from", "held_bytes", "oldest_us", "newest_us", "expires_us")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    PRIMARY_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    LOG_START_FIELD_NUMBER: _ClassVar[int]
    HIGH_WATERMARK_FIELD_NUMBER: _ClassVar[int]
    LOG_END_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    CUMULATIVE_BYTES_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    HELD_FROM_FIELD_NUMBER: _ClassVar[int]
    HELD_BYTES_FIELD_NUMBER: _ClassVar[int]
    OLDEST_US_FIELD_NUMBER: _ClassVar[int]
    NEWEST_US_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_US_FIELD_NUMBER: _ClassVar[int]
    index: int
    primary: str
    replicas: _containers.RepeatedScalarFieldContainer[str]
    log_start: int
    high_watermark: int
    log_end: int
    bytes: int
    state: str
    reason: str
    cumulative_bytes: int
    held: bool
    held_from: int
    held_bytes: int
    oldest_us: int
    newest_us: int
    expires_us: int
    def __init__(self, index: _Optional[int] = ..., primary: _Optional[str] = ..., replicas: _Optional[_Iterable[str]] = ..., log_start: _Optional[int] = ..., high_watermark: _Optional[int] = ..., log_end: _Optional[int] = ..., bytes: _Optional[int] = ..., state: _Optional[str] = ..., reason: _Optional[str] = ..., cumulative_bytes: _Optional[int] = ..., held: bool = ..., held_from: _Optional[int] = ..., held_bytes: _Optional[int] = ..., oldest_us: _Optional[int] = ..., newest_us: _Optional[int] = ..., expires_us: _Optional[int] = ...) -> None: ...

class KeyStatus(_message.Message):
    __slots__ = ("key_id", "active", "fence")
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_FIELD_NUMBER: _ClassVar[int]
    FENCE_FIELD_NUMBER: _ClassVar[int]
    key_id: str
    active: bool
    fence: Fence
    def __init__(self, key_id: _Optional[str] = ..., active: bool = ..., fence: _Optional[_Union[Fence, _Mapping]] = ...) -> None: ...

class PurgeRequest(_message.Message):
    __slots__ = ("topic_id", "partitions", "version")
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    topic_id: str
    partitions: _containers.RepeatedCompositeFieldContainer[PurgePartition]
    version: int
    def __init__(self, topic_id: _Optional[str] = ..., partitions: _Optional[_Iterable[_Union[PurgePartition, _Mapping]]] = ..., version: _Optional[int] = ...) -> None: ...

class PurgePartition(_message.Message):
    __slots__ = ("index", "before_offset")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    BEFORE_OFFSET_FIELD_NUMBER: _ClassVar[int]
    index: int
    before_offset: int
    def __init__(self, index: _Optional[int] = ..., before_offset: _Optional[int] = ...) -> None: ...

class PurgeReply(_message.Message):
    __slots__ = ("partitions",)
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    partitions: _containers.RepeatedCompositeFieldContainer[PurgedPartition]
    def __init__(self, partitions: _Optional[_Iterable[_Union[PurgedPartition, _Mapping]]] = ...) -> None: ...

class PurgedPartition(_message.Message):
    __slots__ = ("index", "log_start", "refused")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    LOG_START_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    index: int
    log_start: int
    refused: _stream_pb2.Error
    def __init__(self, index: _Optional[int] = ..., log_start: _Optional[int] = ..., refused: _Optional[_Union[_stream_pb2.Error, _Mapping]] = ...) -> None: ...

class FlushUsageRequest(_message.Message):
    __slots__ = ("inventory",)
    INVENTORY_FIELD_NUMBER: _ClassVar[int]
    inventory: bool
    def __init__(self, inventory: bool = ...) -> None: ...

class FlushUsageReply(_message.Message):
    __slots__ = ("closes", "outstanding")
    CLOSES_FIELD_NUMBER: _ClassVar[int]
    OUTSTANDING_FIELD_NUMBER: _ClassVar[int]
    closes: int
    outstanding: int
    def __init__(self, closes: _Optional[int] = ..., outstanding: _Optional[int] = ...) -> None: ...

class ConfirmClockRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ConfirmClockReply(_message.Message):
    __slots__ = ("time_us",)
    TIME_US_FIELD_NUMBER: _ClassVar[int]
    time_us: int
    def __init__(self, time_us: _Optional[int] = ...) -> None: ...

class Command(_message.Message):
    __slots__ = ("bootstrap", "control", "join_group", "leave_group", "confirm_move", "confirm_delete", "confirm_hold")
    BOOTSTRAP_FIELD_NUMBER: _ClassVar[int]
    CONTROL_FIELD_NUMBER: _ClassVar[int]
    JOIN_GROUP_FIELD_NUMBER: _ClassVar[int]
    LEAVE_GROUP_FIELD_NUMBER: _ClassVar[int]
    CONFIRM_MOVE_FIELD_NUMBER: _ClassVar[int]
    CONFIRM_DELETE_FIELD_NUMBER: _ClassVar[int]
    CONFIRM_HOLD_FIELD_NUMBER: _ClassVar[int]
    bootstrap: Bootstrap
    control: AppliedByControlPlane
    join_group: JoinGroup
    leave_group: LeaveGroup
    confirm_move: ConfirmMove
    confirm_delete: ConfirmDelete
    confirm_hold: ConfirmHold
    def __init__(self, bootstrap: _Optional[_Union[Bootstrap, _Mapping]] = ..., control: _Optional[_Union[AppliedByControlPlane, _Mapping]] = ..., join_group: _Optional[_Union[JoinGroup, _Mapping]] = ..., leave_group: _Optional[_Union[LeaveGroup, _Mapping]] = ..., confirm_move: _Optional[_Union[ConfirmMove, _Mapping]] = ..., confirm_delete: _Optional[_Union[ConfirmDelete, _Mapping]] = ..., confirm_hold: _Optional[_Union[ConfirmHold, _Mapping]] = ...) -> None: ...

class Bootstrap(_message.Message):
    __slots__ = ("cluster_id", "system_organization_id", "system_project_id", "node_id", "address")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    SYSTEM_ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    SYSTEM_PROJECT_ID_FIELD_NUMBER: _ClassVar[int]
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    system_organization_id: str
    system_project_id: str
    node_id: str
    address: str
    def __init__(self, cluster_id: _Optional[str] = ..., system_organization_id: _Optional[str] = ..., system_project_id: _Optional[str] = ..., node_id: _Optional[str] = ..., address: _Optional[str] = ...) -> None: ...

class AppliedByControlPlane(_message.Message):
    __slots__ = ("request",)
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    request: ApplyRequest
    def __init__(self, request: _Optional[_Union[ApplyRequest, _Mapping]] = ...) -> None: ...

class JoinGroup(_message.Message):
    __slots__ = ("organization_id", "project_id", "group", "member", "session", "topics")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    PROJECT_ID_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    project_id: str
    group: str
    member: str
    session: int
    topics: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, organization_id: _Optional[str] = ..., project_id: _Optional[str] = ..., group: _Optional[str] = ..., member: _Optional[str] = ..., session: _Optional[int] = ..., topics: _Optional[_Iterable[int]] = ...) -> None: ...

class LeaveGroup(_message.Message):
    __slots__ = ("group", "member", "session")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    group: int
    member: str
    session: int
    def __init__(self, group: _Optional[int] = ..., member: _Optional[str] = ..., session: _Optional[int] = ...) -> None: ...

class ConfirmMove(_message.Message):
    __slots__ = ("group", "topic", "partition", "intent_op", "has_committed", "committed")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    INTENT_OP_FIELD_NUMBER: _ClassVar[int]
    HAS_COMMITTED_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_FIELD_NUMBER: _ClassVar[int]
    group: int
    topic: int
    partition: int
    intent_op: int
    has_committed: bool
    committed: int
    def __init__(self, group: _Optional[int] = ..., topic: _Optional[int] = ..., partition: _Optional[int] = ..., intent_op: _Optional[int] = ..., has_committed: bool = ..., committed: _Optional[int] = ...) -> None: ...

class ConfirmDelete(_message.Message):
    __slots__ = ("topic", "intent_op", "given_up")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    INTENT_OP_FIELD_NUMBER: _ClassVar[int]
    GIVEN_UP_FIELD_NUMBER: _ClassVar[int]
    topic: int
    intent_op: int
    given_up: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, topic: _Optional[int] = ..., intent_op: _Optional[int] = ..., given_up: _Optional[_Iterable[int]] = ...) -> None: ...

class ConfirmHold(_message.Message):
    __slots__ = ("topic", "intent_op")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    INTENT_OP_FIELD_NUMBER: _ClassVar[int]
    topic: int
    intent_op: int
    def __init__(self, topic: _Optional[int] = ..., intent_op: _Optional[int] = ...) -> None: ...

class Result(_message.Message):
    __slots__ = ("op", "applied", "group", "refused")
    OP_FIELD_NUMBER: _ClassVar[int]
    APPLIED_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    op: int
    applied: ApplyReply
    group: GroupChanged
    refused: _stream_pb2.Error
    def __init__(self, op: _Optional[int] = ..., applied: _Optional[_Union[ApplyReply, _Mapping]] = ..., group: _Optional[_Union[GroupChanged, _Mapping]] = ..., refused: _Optional[_Union[_stream_pb2.Error, _Mapping]] = ...) -> None: ...

class GroupChanged(_message.Message):
    __slots__ = ("group", "generation", "changed")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    CHANGED_FIELD_NUMBER: _ClassVar[int]
    group: int
    generation: int
    changed: bool
    def __init__(self, group: _Optional[int] = ..., generation: _Optional[int] = ..., changed: bool = ...) -> None: ...

class Snapshot(_message.Message):
    __slots__ = ("op", "cluster_id", "bootstrap_op", "nodes", "counters", "organizations", "projects", "topics", "keys", "groups", "deleted_topics", "holds")
    OP_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    BOOTSTRAP_OP_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    COUNTERS_FIELD_NUMBER: _ClassVar[int]
    ORGANIZATIONS_FIELD_NUMBER: _ClassVar[int]
    PROJECTS_FIELD_NUMBER: _ClassVar[int]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    DELETED_TOPICS_FIELD_NUMBER: _ClassVar[int]
    HOLDS_FIELD_NUMBER: _ClassVar[int]
    op: int
    cluster_id: str
    bootstrap_op: int
    nodes: _containers.RepeatedCompositeFieldContainer[NodeRow]
    counters: Counters
    organizations: _containers.RepeatedCompositeFieldContainer[OrganizationRow]
    projects: _containers.RepeatedCompositeFieldContainer[ProjectRow]
    topics: _containers.RepeatedCompositeFieldContainer[TopicRow]
    keys: _containers.RepeatedCompositeFieldContainer[KeyRow]
    groups: _containers.RepeatedCompositeFieldContainer[GroupRow]
    deleted_topics: _containers.RepeatedCompositeFieldContainer[DeletedTopicRow]
    holds: _containers.RepeatedCompositeFieldContainer[HoldRow]
    def __init__(self, op: _Optional[int] = ..., cluster_id: _Optional[str] = ..., bootstrap_op: _Optional[int] = ..., nodes: _Optional[_Iterable[_Union[NodeRow, _Mapping]]] = ..., counters: _Optional[_Union[Counters, _Mapping]] = ..., organizations: _Optional[_Iterable[_Union[OrganizationRow, _Mapping]]] = ..., projects: _Optional[_Iterable[_Union[ProjectRow, _Mapping]]] = ..., topics: _Optional[_Iterable[_Union[TopicRow, _Mapping]]] = ..., keys: _Optional[_Iterable[_Union[KeyRow, _Mapping]]] = ..., groups: _Optional[_Iterable[_Union[GroupRow, _Mapping]]] = ..., deleted_topics: _Optional[_Iterable[_Union[DeletedTopicRow, _Mapping]]] = ..., holds: _Optional[_Iterable[_Union[HoldRow, _Mapping]]] = ...) -> None: ...

class NodeRow(_message.Message):
    __slots__ = ("id", "address")
    ID_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    id: str
    address: str
    def __init__(self, id: _Optional[str] = ..., address: _Optional[str] = ...) -> None: ...

class Counters(_message.Message):
    __slots__ = ("organization", "project", "topic", "principal", "group", "session_max")
    ORGANIZATION_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    SESSION_MAX_FIELD_NUMBER: _ClassVar[int]
    organization: int
    project: int
    topic: int
    principal: int
    group: int
    session_max: int
    def __init__(self, organization: _Optional[int] = ..., project: _Optional[int] = ..., topic: _Optional[int] = ..., principal: _Optional[int] = ..., group: _Optional[int] = ..., session_max: _Optional[int] = ...) -> None: ...

class OrganizationRow(_message.Message):
    __slots__ = ("number", "id")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    number: int
    id: str
    def __init__(self, number: _Optional[int] = ..., id: _Optional[str] = ...) -> None: ...

class ProjectRow(_message.Message):
    __slots__ = ("number", "id", "organization_id", "name")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    number: int
    id: str
    organization_id: str
    name: str
    def __init__(self, number: _Optional[int] = ..., id: _Optional[str] = ..., organization_id: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class TopicRow(_message.Message):
    __slots__ = ("number", "created_revision", "spec", "fence", "closing_op", "force_reason")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    CREATED_REVISION_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    FENCE_FIELD_NUMBER: _ClassVar[int]
    CLOSING_OP_FIELD_NUMBER: _ClassVar[int]
    FORCE_REASON_FIELD_NUMBER: _ClassVar[int]
    number: int
    created_revision: int
    spec: PutTopic
    fence: Fence
    closing_op: int
    force_reason: str
    def __init__(self, number: _Optional[int] = ..., created_revision: _Optional[int] = ..., spec: _Optional[_Union[PutTopic, _Mapping]] = ..., fence: _Optional[_Union[Fence, _Mapping]] = ..., closing_op: _Optional[int] = ..., force_reason: _Optional[str] = ...) -> None: ...

class DeletedTopicRow(_message.Message):
    __slots__ = ("topic_id", "number", "fence", "deleted_op", "given_up", "project_id", "name")
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    FENCE_FIELD_NUMBER: _ClassVar[int]
    DELETED_OP_FIELD_NUMBER: _ClassVar[int]
    GIVEN_UP_FIELD_NUMBER: _ClassVar[int]
    PROJECT_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    topic_id: str
    number: int
    fence: Fence
    deleted_op: int
    given_up: _containers.RepeatedScalarFieldContainer[int]
    project_id: str
    name: str
    def __init__(self, topic_id: _Optional[str] = ..., number: _Optional[int] = ..., fence: _Optional[_Union[Fence, _Mapping]] = ..., deleted_op: _Optional[int] = ..., given_up: _Optional[_Iterable[int]] = ..., project_id: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class HoldRow(_message.Message):
    __slots__ = ("hold_id", "topic_id", "partitions", "from_offset", "fence", "intent_op", "active", "confirmed")
    HOLD_ID_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    FROM_OFFSET_FIELD_NUMBER: _ClassVar[int]
    FENCE_FIELD_NUMBER: _ClassVar[int]
    INTENT_OP_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_FIELD_NUMBER: _ClassVar[int]
    CONFIRMED_FIELD_NUMBER: _ClassVar[int]
    hold_id: str
    topic_id: str
    partitions: _containers.RepeatedScalarFieldContainer[int]
    from_offset: int
    fence: Fence
    intent_op: int
    active: bool
    confirmed: bool
    def __init__(self, hold_id: _Optional[str] = ..., topic_id: _Optional[str] = ..., partitions: _Optional[_Iterable[int]] = ..., from_offset: _Optional[int] = ..., fence: _Optional[_Union[Fence, _Mapping]] = ..., intent_op: _Optional[int] = ..., active: bool = ..., confirmed: bool = ...) -> None: ...

class KeyRow(_message.Message):
    __slots__ = ("principal", "spec", "fence", "active")
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    FENCE_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_FIELD_NUMBER: _ClassVar[int]
    principal: int
    spec: PutKey
    fence: Fence
    active: bool
    def __init__(self, principal: _Optional[int] = ..., spec: _Optional[_Union[PutKey, _Mapping]] = ..., fence: _Optional[_Union[Fence, _Mapping]] = ..., active: bool = ...) -> None: ...

class GroupRow(_message.Message):
    __slots__ = ("number", "organization_id", "project_id", "name", "generation", "members", "slots")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    PROJECT_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    number: int
    organization_id: str
    project_id: str
    name: str
    generation: int
    members: _containers.RepeatedCompositeFieldContainer[MemberRow]
    slots: _containers.RepeatedCompositeFieldContainer[SlotRow]
    def __init__(self, number: _Optional[int] = ..., organization_id: _Optional[str] = ..., project_id: _Optional[str] = ..., name: _Optional[str] = ..., generation: _Optional[int] = ..., members: _Optional[_Iterable[_Union[MemberRow, _Mapping]]] = ..., slots: _Optional[_Iterable[_Union[SlotRow, _Mapping]]] = ...) -> None: ...

class MemberRow(_message.Message):
    __slots__ = ("name", "session", "topics")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    name: str
    session: int
    topics: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, name: _Optional[str] = ..., session: _Optional[int] = ..., topics: _Optional[_Iterable[int]] = ...) -> None: ...

class Owner(_message.Message):
    __slots__ = ("member", "session")
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    member: str
    session: int
    def __init__(self, member: _Optional[str] = ..., session: _Optional[int] = ...) -> None: ...

class SlotRow(_message.Message):
    __slots__ = ("topic", "partition", "generation", "intent_op", "moving", "owner", "owner_generation", "target", "has_committed", "committed")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    INTENT_OP_FIELD_NUMBER: _ClassVar[int]
    MOVING_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    OWNER_GENERATION_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    HAS_COMMITTED_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_FIELD_NUMBER: _ClassVar[int]
    topic: int
    partition: int
    generation: int
    intent_op: int
    moving: bool
    owner: Owner
    owner_generation: int
    target: Owner
    has_committed: bool
    committed: int
    def __init__(self, topic: _Optional[int] = ..., partition: _Optional[int] = ..., generation: _Optional[int] = ..., intent_op: _Optional[int] = ..., moving: bool = ..., owner: _Optional[_Union[Owner, _Mapping]] = ..., owner_generation: _Optional[int] = ..., target: _Optional[_Union[Owner, _Mapping]] = ..., has_committed: bool = ..., committed: _Optional[int] = ...) -> None: ...
