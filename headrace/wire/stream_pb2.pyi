from google.protobuf import any_pb2 as _any_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ErrorKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ERROR_KIND_UNSPECIFIED: _ClassVar[ErrorKind]
    TERMINAL: _ClassVar[ErrorKind]
    RETRY_SAME_NODE: _ClassVar[ErrorKind]
    RETRY_OTHER_NODE: _ClassVar[ErrorKind]
    COMMITTED_UNKNOWN: _ClassVar[ErrorKind]
    SESSION_EXPIRED: _ClassVar[ErrorKind]

class FetchStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FETCH_STATUS_UNSPECIFIED: _ClassVar[FetchStatus]
    OK: _ClassVar[FetchStatus]
    EMPTY: _ClassVar[FetchStatus]
    TRUNCATED: _ClassVar[FetchStatus]
    CORRUPT: _ClassVar[FetchStatus]
    NOT_PRIMARY: _ClassVar[FetchStatus]
    REBUILDING: _ClassVar[FetchStatus]
ERROR_KIND_UNSPECIFIED: ErrorKind
TERMINAL: ErrorKind
RETRY_SAME_NODE: ErrorKind
RETRY_OTHER_NODE: ErrorKind
COMMITTED_UNKNOWN: ErrorKind
SESSION_EXPIRED: ErrorKind
FETCH_STATUS_UNSPECIFIED: FetchStatus
OK: FetchStatus
EMPTY: FetchStatus
TRUNCATED: FetchStatus
CORRUPT: FetchStatus
NOT_PRIMARY: FetchStatus
REBUILDING: FetchStatus

class Error(_message.Message):
    __slots__ = ("code", "kind", "message", "hint", "retry_after_ms", "expected")
    CODE_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    HINT_FIELD_NUMBER: _ClassVar[int]
    RETRY_AFTER_MS_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FIELD_NUMBER: _ClassVar[int]
    code: str
    kind: ErrorKind
    message: str
    hint: str
    retry_after_ms: int
    expected: int
    def __init__(self, code: _Optional[str] = ..., kind: _Optional[_Union[ErrorKind, str]] = ..., message: _Optional[str] = ..., hint: _Optional[str] = ..., retry_after_ms: _Optional[int] = ..., expected: _Optional[int] = ...) -> None: ...

class Status(_message.Message):
    __slots__ = ("code", "message", "details")
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    DETAILS_FIELD_NUMBER: _ClassVar[int]
    code: int
    message: str
    details: _containers.RepeatedCompositeFieldContainer[_any_pb2.Any]
    def __init__(self, code: _Optional[int] = ..., message: _Optional[str] = ..., details: _Optional[_Iterable[_Union[_any_pb2.Any, _Mapping]]] = ...) -> None: ...

class ProduceRequest(_message.Message):
    __slots__ = ("topic", "created_revision", "partition", "batch", "request")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    CREATED_REVISION_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    topic: int
    created_revision: int
    partition: int
    batch: bytes
    request: int
    def __init__(self, topic: _Optional[int] = ..., created_revision: _Optional[int] = ..., partition: _Optional[int] = ..., batch: _Optional[bytes] = ..., request: _Optional[int] = ...) -> None: ...

class ProduceReply(_message.Message):
    __slots__ = ("request", "base_offset", "record_count", "persisted", "replicas", "duplicate", "append_time_us", "error")
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    BASE_OFFSET_FIELD_NUMBER: _ClassVar[int]
    RECORD_COUNT_FIELD_NUMBER: _ClassVar[int]
    PERSISTED_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    DUPLICATE_FIELD_NUMBER: _ClassVar[int]
    APPEND_TIME_US_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    request: int
    base_offset: int
    record_count: int
    persisted: int
    replicas: int
    duplicate: bool
    append_time_us: int
    error: Error
    def __init__(self, request: _Optional[int] = ..., base_offset: _Optional[int] = ..., record_count: _Optional[int] = ..., persisted: _Optional[int] = ..., replicas: _Optional[int] = ..., duplicate: bool = ..., append_time_us: _Optional[int] = ..., error: _Optional[_Union[Error, _Mapping]] = ...) -> None: ...

class FetchRequest(_message.Message):
    __slots__ = ("topic", "created_revision", "partition", "offset", "bytes_max", "wait_ms_max", "group", "generation")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    CREATED_REVISION_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    BYTES_MAX_FIELD_NUMBER: _ClassVar[int]
    WAIT_MS_MAX_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    topic: int
    created_revision: int
    partition: int
    offset: int
    bytes_max: int
    wait_ms_max: int
    group: int
    generation: int
    def __init__(self, topic: _Optional[int] = ..., created_revision: _Optional[int] = ..., partition: _Optional[int] = ..., offset: _Optional[int] = ..., bytes_max: _Optional[int] = ..., wait_ms_max: _Optional[int] = ..., group: _Optional[int] = ..., generation: _Optional[int] = ...) -> None: ...

class FetchReply(_message.Message):
    __slots__ = ("status", "log_start", "high_watermark", "log_end", "batches")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    LOG_START_FIELD_NUMBER: _ClassVar[int]
    HIGH_WATERMARK_FIELD_NUMBER: _ClassVar[int]
    LOG_END_FIELD_NUMBER: _ClassVar[int]
    BATCHES_FIELD_NUMBER: _ClassVar[int]
    status: FetchStatus
    log_start: int
    high_watermark: int
    log_end: int
    batches: bytes
    def __init__(self, status: _Optional[_Union[FetchStatus, str]] = ..., log_start: _Optional[int] = ..., high_watermark: _Optional[int] = ..., log_end: _Optional[int] = ..., batches: _Optional[bytes] = ...) -> None: ...

class ConsumeRequest(_message.Message):
    __slots__ = ("begin", "credit")
    BEGIN_FIELD_NUMBER: _ClassVar[int]
    CREDIT_FIELD_NUMBER: _ClassVar[int]
    begin: ConsumeBegin
    credit: int
    def __init__(self, begin: _Optional[_Union[ConsumeBegin, _Mapping]] = ..., credit: _Optional[int] = ...) -> None: ...

class ConsumeBegin(_message.Message):
    __slots__ = ("topic", "created_revision", "partition", "offset", "credit", "group", "generation", "bytes_max")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    CREATED_REVISION_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    CREDIT_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    BYTES_MAX_FIELD_NUMBER: _ClassVar[int]
    topic: int
    created_revision: int
    partition: int
    offset: int
    credit: int
    group: int
    generation: int
    bytes_max: int
    def __init__(self, topic: _Optional[int] = ..., created_revision: _Optional[int] = ..., partition: _Optional[int] = ..., offset: _Optional[int] = ..., credit: _Optional[int] = ..., group: _Optional[int] = ..., generation: _Optional[int] = ..., bytes_max: _Optional[int] = ...) -> None: ...

class ConsumeReply(_message.Message):
    __slots__ = ("fetch", "error")
    FETCH_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    fetch: FetchReply
    error: Error
    def __init__(self, fetch: _Optional[_Union[FetchReply, _Mapping]] = ..., error: _Optional[_Union[Error, _Mapping]] = ...) -> None: ...

class CommitOffsetsRequest(_message.Message):
    __slots__ = ("topic", "created_revision", "partition", "group", "generation", "offset")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    CREATED_REVISION_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    topic: int
    created_revision: int
    partition: int
    group: int
    generation: int
    offset: int
    def __init__(self, topic: _Optional[int] = ..., created_revision: _Optional[int] = ..., partition: _Optional[int] = ..., group: _Optional[int] = ..., generation: _Optional[int] = ..., offset: _Optional[int] = ...) -> None: ...

class CommitOffsetsReply(_message.Message):
    __slots__ = ("offset",)
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    offset: int
    def __init__(self, offset: _Optional[int] = ...) -> None: ...

class FetchOffsetsRequest(_message.Message):
    __slots__ = ("topic", "created_revision", "partition", "group")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    CREATED_REVISION_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    topic: int
    created_revision: int
    partition: int
    group: int
    def __init__(self, topic: _Optional[int] = ..., created_revision: _Optional[int] = ..., partition: _Optional[int] = ..., group: _Optional[int] = ...) -> None: ...

class FetchOffsetsReply(_message.Message):
    __slots__ = ("found", "offset", "generation", "log_start", "high_watermark", "start")
    FOUND_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    LOG_START_FIELD_NUMBER: _ClassVar[int]
    HIGH_WATERMARK_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    found: bool
    offset: int
    generation: int
    log_start: int
    high_watermark: int
    start: int
    def __init__(self, found: bool = ..., offset: _Optional[int] = ..., generation: _Optional[int] = ..., log_start: _Optional[int] = ..., high_watermark: _Optional[int] = ..., start: _Optional[int] = ...) -> None: ...

class ListOffsetsRequest(_message.Message):
    __slots__ = ("topic", "created_revision", "partition", "time_us")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    CREATED_REVISION_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    TIME_US_FIELD_NUMBER: _ClassVar[int]
    topic: int
    created_revision: int
    partition: int
    time_us: int
    def __init__(self, topic: _Optional[int] = ..., created_revision: _Optional[int] = ..., partition: _Optional[int] = ..., time_us: _Optional[int] = ...) -> None: ...

class ListOffsetsReply(_message.Message):
    __slots__ = ("found", "offset", "append_time_us", "log_start", "high_watermark")
    FOUND_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    APPEND_TIME_US_FIELD_NUMBER: _ClassVar[int]
    LOG_START_FIELD_NUMBER: _ClassVar[int]
    HIGH_WATERMARK_FIELD_NUMBER: _ClassVar[int]
    found: bool
    offset: int
    append_time_us: int
    log_start: int
    high_watermark: int
    def __init__(self, found: bool = ..., offset: _Optional[int] = ..., append_time_us: _Optional[int] = ..., log_start: _Optional[int] = ..., high_watermark: _Optional[int] = ...) -> None: ...

class Header(_message.Message):
    __slots__ = ("key", "value")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: bytes
    def __init__(self, key: _Optional[str] = ..., value: _Optional[bytes] = ...) -> None: ...

class Message(_message.Message):
    __slots__ = ("key", "value", "headers", "timestamp_us")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_US_FIELD_NUMBER: _ClassVar[int]
    key: bytes
    value: bytes
    headers: _containers.RepeatedCompositeFieldContainer[Header]
    timestamp_us: int
    def __init__(self, key: _Optional[bytes] = ..., value: _Optional[bytes] = ..., headers: _Optional[_Iterable[_Union[Header, _Mapping]]] = ..., timestamp_us: _Optional[int] = ...) -> None: ...

class PublishRequest(_message.Message):
    __slots__ = ("project", "topic", "partition", "messages", "producer_id", "producer_epoch", "base_sequence")
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    BASE_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    project: str
    topic: str
    partition: int
    messages: _containers.RepeatedCompositeFieldContainer[Message]
    producer_id: bytes
    producer_epoch: int
    base_sequence: int
    def __init__(self, project: _Optional[str] = ..., topic: _Optional[str] = ..., partition: _Optional[int] = ..., messages: _Optional[_Iterable[_Union[Message, _Mapping]]] = ..., producer_id: _Optional[bytes] = ..., producer_epoch: _Optional[int] = ..., base_sequence: _Optional[int] = ...) -> None: ...

class PublishReply(_message.Message):
    __slots__ = ("partition", "base_offset", "message_count", "persisted", "replicas", "duplicate", "append_time_us")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    BASE_OFFSET_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_COUNT_FIELD_NUMBER: _ClassVar[int]
    PERSISTED_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    DUPLICATE_FIELD_NUMBER: _ClassVar[int]
    APPEND_TIME_US_FIELD_NUMBER: _ClassVar[int]
    partition: int
    base_offset: int
    message_count: int
    persisted: int
    replicas: int
    duplicate: bool
    append_time_us: int
    def __init__(self, partition: _Optional[int] = ..., base_offset: _Optional[int] = ..., message_count: _Optional[int] = ..., persisted: _Optional[int] = ..., replicas: _Optional[int] = ..., duplicate: bool = ..., append_time_us: _Optional[int] = ...) -> None: ...

class FetchMessagesRequest(_message.Message):
    __slots__ = ("project", "topic", "partition", "offset", "messages_max", "bytes_max", "wait_ms_max")
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_MAX_FIELD_NUMBER: _ClassVar[int]
    BYTES_MAX_FIELD_NUMBER: _ClassVar[int]
    WAIT_MS_MAX_FIELD_NUMBER: _ClassVar[int]
    project: str
    topic: str
    partition: int
    offset: int
    messages_max: int
    bytes_max: int
    wait_ms_max: int
    def __init__(self, project: _Optional[str] = ..., topic: _Optional[str] = ..., partition: _Optional[int] = ..., offset: _Optional[int] = ..., messages_max: _Optional[int] = ..., bytes_max: _Optional[int] = ..., wait_ms_max: _Optional[int] = ...) -> None: ...

class FetchMessagesReply(_message.Message):
    __slots__ = ("status", "log_start", "high_watermark", "log_end", "next_offset", "messages")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    LOG_START_FIELD_NUMBER: _ClassVar[int]
    HIGH_WATERMARK_FIELD_NUMBER: _ClassVar[int]
    LOG_END_FIELD_NUMBER: _ClassVar[int]
    NEXT_OFFSET_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    status: FetchStatus
    log_start: int
    high_watermark: int
    log_end: int
    next_offset: int
    messages: _containers.RepeatedCompositeFieldContainer[StoredMessage]
    def __init__(self, status: _Optional[_Union[FetchStatus, str]] = ..., log_start: _Optional[int] = ..., high_watermark: _Optional[int] = ..., log_end: _Optional[int] = ..., next_offset: _Optional[int] = ..., messages: _Optional[_Iterable[_Union[StoredMessage, _Mapping]]] = ...) -> None: ...

class StoredMessage(_message.Message):
    __slots__ = ("offset", "append_time_us", "message")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    APPEND_TIME_US_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    offset: int
    append_time_us: int
    message: Message
    def __init__(self, offset: _Optional[int] = ..., append_time_us: _Optional[int] = ..., message: _Optional[_Union[Message, _Mapping]] = ...) -> None: ...

class DescribeRequest(_message.Message):
    __slots__ = ("project", "topics")
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    project: str
    topics: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, project: _Optional[str] = ..., topics: _Optional[_Iterable[str]] = ...) -> None: ...

class DescribeReply(_message.Message):
    __slots__ = ("cluster_id", "nodes", "topics", "metadata_op")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    METADATA_OP_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    nodes: _containers.RepeatedCompositeFieldContainer[Node]
    topics: _containers.RepeatedCompositeFieldContainer[Topic]
    metadata_op: int
    def __init__(self, cluster_id: _Optional[str] = ..., nodes: _Optional[_Iterable[_Union[Node, _Mapping]]] = ..., topics: _Optional[_Iterable[_Union[Topic, _Mapping]]] = ..., metadata_op: _Optional[int] = ...) -> None: ...

class Node(_message.Message):
    __slots__ = ("id", "address")
    ID_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    id: str
    address: str
    def __init__(self, id: _Optional[str] = ..., address: _Optional[str] = ...) -> None: ...

class Topic(_message.Message):
    __slots__ = ("name", "number", "created_revision", "id", "message_bytes_max", "codec", "partitions", "error")
    NAME_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    CREATED_REVISION_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_BYTES_MAX_FIELD_NUMBER: _ClassVar[int]
    CODEC_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    name: str
    number: int
    created_revision: int
    id: str
    message_bytes_max: int
    codec: str
    partitions: _containers.RepeatedCompositeFieldContainer[Partition]
    error: Error
    def __init__(self, name: _Optional[str] = ..., number: _Optional[int] = ..., created_revision: _Optional[int] = ..., id: _Optional[str] = ..., message_bytes_max: _Optional[int] = ..., codec: _Optional[str] = ..., partitions: _Optional[_Iterable[_Union[Partition, _Mapping]]] = ..., error: _Optional[_Union[Error, _Mapping]] = ...) -> None: ...

class Partition(_message.Message):
    __slots__ = ("index", "primary")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    PRIMARY_FIELD_NUMBER: _ClassVar[int]
    index: int
    primary: str
    def __init__(self, index: _Optional[int] = ..., primary: _Optional[str] = ...) -> None: ...

class SessionRequest(_message.Message):
    __slots__ = ("join", "heartbeat", "released", "leave")
    JOIN_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    RELEASED_FIELD_NUMBER: _ClassVar[int]
    LEAVE_FIELD_NUMBER: _ClassVar[int]
    join: Join
    heartbeat: Heartbeat
    released: Released
    leave: Leave
    def __init__(self, join: _Optional[_Union[Join, _Mapping]] = ..., heartbeat: _Optional[_Union[Heartbeat, _Mapping]] = ..., released: _Optional[_Union[Released, _Mapping]] = ..., leave: _Optional[_Union[Leave, _Mapping]] = ...) -> None: ...

class Join(_message.Message):
    __slots__ = ("project", "group", "topics", "member", "timeout_ms")
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    project: str
    group: str
    topics: _containers.RepeatedScalarFieldContainer[str]
    member: str
    timeout_ms: int
    def __init__(self, project: _Optional[str] = ..., group: _Optional[str] = ..., topics: _Optional[_Iterable[str]] = ..., member: _Optional[str] = ..., timeout_ms: _Optional[int] = ...) -> None: ...

class Heartbeat(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Released(_message.Message):
    __slots__ = ("partitions",)
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    partitions: _containers.RepeatedCompositeFieldContainer[Assigned]
    def __init__(self, partitions: _Optional[_Iterable[_Union[Assigned, _Mapping]]] = ...) -> None: ...

class Leave(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SessionEvent(_message.Message):
    __slots__ = ("joined", "assignment", "ended")
    JOINED_FIELD_NUMBER: _ClassVar[int]
    ASSIGNMENT_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    joined: Joined
    assignment: Assignment
    ended: Error
    def __init__(self, joined: _Optional[_Union[Joined, _Mapping]] = ..., assignment: _Optional[_Union[Assignment, _Mapping]] = ..., ended: _Optional[_Union[Error, _Mapping]] = ...) -> None: ...

class Joined(_message.Message):
    __slots__ = ("group", "member", "heartbeat_ms")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_MS_FIELD_NUMBER: _ClassVar[int]
    group: int
    member: str
    heartbeat_ms: int
    def __init__(self, group: _Optional[int] = ..., member: _Optional[str] = ..., heartbeat_ms: _Optional[int] = ...) -> None: ...

class Assignment(_message.Message):
    __slots__ = ("generation", "assigned", "revoked", "members")
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    ASSIGNED_FIELD_NUMBER: _ClassVar[int]
    REVOKED_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    generation: int
    assigned: _containers.RepeatedCompositeFieldContainer[Assigned]
    revoked: _containers.RepeatedCompositeFieldContainer[Assigned]
    members: int
    def __init__(self, generation: _Optional[int] = ..., assigned: _Optional[_Iterable[_Union[Assigned, _Mapping]]] = ..., revoked: _Optional[_Iterable[_Union[Assigned, _Mapping]]] = ..., members: _Optional[int] = ...) -> None: ...

class Assigned(_message.Message):
    __slots__ = ("topic", "created_revision", "partition", "generation", "has_committed", "committed", "name")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    CREATED_REVISION_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    HAS_COMMITTED_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    topic: int
    created_revision: int
    partition: int
    generation: int
    has_committed: bool
    committed: int
    name: str
    def __init__(self, topic: _Optional[int] = ..., created_revision: _Optional[int] = ..., partition: _Optional[int] = ..., generation: _Optional[int] = ..., has_committed: bool = ..., committed: _Optional[int] = ..., name: _Optional[str] = ...) -> None: ...

class DescribeGroupRequest(_message.Message):
    __slots__ = ("project", "group")
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    project: str
    group: str
    def __init__(self, project: _Optional[str] = ..., group: _Optional[str] = ...) -> None: ...

class DescribeGroupReply(_message.Message):
    __slots__ = ("group", "generation", "state", "members")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    group: int
    generation: int
    state: str
    members: _containers.RepeatedCompositeFieldContainer[GroupMember]
    def __init__(self, group: _Optional[int] = ..., generation: _Optional[int] = ..., state: _Optional[str] = ..., members: _Optional[_Iterable[_Union[GroupMember, _Mapping]]] = ...) -> None: ...

class GroupMember(_message.Message):
    __slots__ = ("member", "assigned")
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    ASSIGNED_FIELD_NUMBER: _ClassVar[int]
    member: str
    assigned: _containers.RepeatedCompositeFieldContainer[Assigned]
    def __init__(self, member: _Optional[str] = ..., assigned: _Optional[_Iterable[_Union[Assigned, _Mapping]]] = ...) -> None: ...

class ListGroupsRequest(_message.Message):
    __slots__ = ("project", "after", "groups_max")
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    GROUPS_MAX_FIELD_NUMBER: _ClassVar[int]
    project: str
    after: str
    groups_max: int
    def __init__(self, project: _Optional[str] = ..., after: _Optional[str] = ..., groups_max: _Optional[int] = ...) -> None: ...

class ListGroupsReply(_message.Message):
    __slots__ = ("groups", "next")
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    groups: _containers.RepeatedCompositeFieldContainer[GroupRow]
    next: str
    def __init__(self, groups: _Optional[_Iterable[_Union[GroupRow, _Mapping]]] = ..., next: _Optional[str] = ...) -> None: ...

class GroupRow(_message.Message):
    __slots__ = ("name", "group", "generation", "state", "members", "partitions", "topics")
    NAME_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    name: str
    group: int
    generation: int
    state: str
    members: int
    partitions: int
    topics: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., group: _Optional[int] = ..., generation: _Optional[int] = ..., state: _Optional[str] = ..., members: _Optional[int] = ..., partitions: _Optional[int] = ..., topics: _Optional[_Iterable[str]] = ...) -> None: ...
