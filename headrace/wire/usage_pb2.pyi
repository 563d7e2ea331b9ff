from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class UsageRecord(_message.Message):
    __slots__ = ("close", "counter")
    CLOSE_FIELD_NUMBER: _ClassVar[int]
    COUNTER_FIELD_NUMBER: _ClassVar[int]
    close: Close
    counter: Counter
    def __init__(self, close: _Optional[_Union[Close, _Mapping]] = ..., counter: _Optional[_Union[Counter, _Mapping]] = ...) -> None: ...

class Close(_message.Message):
    __slots__ = ("topic", "created_revision", "partition", "sequence", "from_op", "to_op", "window_start_us", "window_end_us", "sums", "cluster_id", "topic_id", "topic_name", "organization_id", "project_id")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    CREATED_REVISION_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    FROM_OP_FIELD_NUMBER: _ClassVar[int]
    TO_OP_FIELD_NUMBER: _ClassVar[int]
    WINDOW_START_US_FIELD_NUMBER: _ClassVar[int]
    WINDOW_END_US_FIELD_NUMBER: _ClassVar[int]
    SUMS_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    TOPIC_NAME_FIELD_NUMBER: _ClassVar[int]
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    PROJECT_ID_FIELD_NUMBER: _ClassVar[int]
    topic: int
    created_revision: int
    partition: int
    sequence: int
    from_op: int
    to_op: int
    window_start_us: int
    window_end_us: int
    sums: _containers.RepeatedCompositeFieldContainer[Sum]
    cluster_id: str
    topic_id: str
    topic_name: str
    organization_id: str
    project_id: str
    def __init__(self, topic: _Optional[int] = ..., created_revision: _Optional[int] = ..., partition: _Optional[int] = ..., sequence: _Optional[int] = ..., from_op: _Optional[int] = ..., to_op: _Optional[int] = ..., window_start_us: _Optional[int] = ..., window_end_us: _Optional[int] = ..., sums: _Optional[_Iterable[_Union[Sum, _Mapping]]] = ..., cluster_id: _Optional[str] = ..., topic_id: _Optional[str] = ..., topic_name: _Optional[str] = ..., organization_id: _Optional[str] = ..., project_id: _Optional[str] = ...) -> None: ...

class Sum(_message.Message):
    __slots__ = ("principal", "ingress_bytes", "records", "batches", "principal_id")
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    INGRESS_BYTES_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    BATCHES_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_ID_FIELD_NUMBER: _ClassVar[int]
    principal: int
    ingress_bytes: int
    records: int
    batches: int
    principal_id: str
    def __init__(self, principal: _Optional[int] = ..., ingress_bytes: _Optional[int] = ..., records: _Optional[int] = ..., batches: _Optional[int] = ..., principal_id: _Optional[str] = ...) -> None: ...

class Counter(_message.Message):
    __slots__ = ("node_id", "incarnation", "shard", "sequence", "topic", "principal", "meter", "delta", "cumulative", "window_start_us", "window_end_us", "created_revision", "final", "cluster_id", "topic_id", "topic_name", "organization_id", "project_id", "principal_id")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    SHARD_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    METER_FIELD_NUMBER: _ClassVar[int]
    DELTA_FIELD_NUMBER: _ClassVar[int]
    CUMULATIVE_FIELD_NUMBER: _ClassVar[int]
    WINDOW_START_US_FIELD_NUMBER: _ClassVar[int]
    WINDOW_END_US_FIELD_NUMBER: _ClassVar[int]
    CREATED_REVISION_FIELD_NUMBER: _ClassVar[int]
    FINAL_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    TOPIC_NAME_FIELD_NUMBER: _ClassVar[int]
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    PROJECT_ID_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_ID_FIELD_NUMBER: _ClassVar[int]
    node_id: str
    incarnation: int
    shard: int
    sequence: int
    topic: int
    principal: int
    meter: str
    delta: int
    cumulative: int
    window_start_us: int
    window_end_us: int
    created_revision: int
    final: bool
    cluster_id: str
    topic_id: str
    topic_name: str
    organization_id: str
    project_id: str
    principal_id: str
    def __init__(self, node_id: _Optional[str] = ..., incarnation: _Optional[int] = ..., shard: _Optional[int] = ..., sequence: _Optional[int] = ..., topic: _Optional[int] = ..., principal: _Optional[int] = ..., meter: _Optional[str] = ..., delta: _Optional[int] = ..., cumulative: _Optional[int] = ..., window_start_us: _Optional[int] = ..., window_end_us: _Optional[int] = ..., created_revision: _Optional[int] = ..., final: bool = ..., cluster_id: _Optional[str] = ..., topic_id: _Optional[str] = ..., topic_name: _Optional[str] = ..., organization_id: _Optional[str] = ..., project_id: _Optional[str] = ..., principal_id: _Optional[str] = ...) -> None: ...

class RetentionRecord(_message.Message):
    __slots__ = ("trimmed", "inventory")
    TRIMMED_FIELD_NUMBER: _ClassVar[int]
    INVENTORY_FIELD_NUMBER: _ClassVar[int]
    trimmed: Trimmed
    inventory: Inventory
    def __init__(self, trimmed: _Optional[_Union[Trimmed, _Mapping]] = ..., inventory: _Optional[_Union[Inventory, _Mapping]] = ...) -> None: ...

class Trimmed(_message.Message):
    __slots__ = ("topic", "created_revision", "partition", "trim_op", "policy_version", "cause", "first_offset", "last_offset", "bytes", "records", "min_time_us", "max_time_us", "sequence", "trimmed_at_us", "segments", "cluster_id", "topic_id", "topic_name", "organization_id", "project_id")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    CREATED_REVISION_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    TRIM_OP_FIELD_NUMBER: _ClassVar[int]
    POLICY_VERSION_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    FIRST_OFFSET_FIELD_NUMBER: _ClassVar[int]
    LAST_OFFSET_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    MIN_TIME_US_FIELD_NUMBER: _ClassVar[int]
    MAX_TIME_US_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    TRIMMED_AT_US_FIELD_NUMBER: _ClassVar[int]
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    TOPIC_NAME_FIELD_NUMBER: _ClassVar[int]
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    PROJECT_ID_FIELD_NUMBER: _ClassVar[int]
    topic: int
    created_revision: int
    partition: int
    trim_op: int
    policy_version: int
    cause: str
    first_offset: int
    last_offset: int
    bytes: int
    records: int
    min_time_us: int
    max_time_us: int
    sequence: int
    trimmed_at_us: int
    segments: int
    cluster_id: str
    topic_id: str
    topic_name: str
    organization_id: str
    project_id: str
    def __init__(self, topic: _Optional[int] = ..., created_revision: _Optional[int] = ..., partition: _Optional[int] = ..., trim_op: _Optional[int] = ..., policy_version: _Optional[int] = ..., cause: _Optional[str] = ..., first_offset: _Optional[int] = ..., last_offset: _Optional[int] = ..., bytes: _Optional[int] = ..., records: _Optional[int] = ..., min_time_us: _Optional[int] = ..., max_time_us: _Optional[int] = ..., sequence: _Optional[int] = ..., trimmed_at_us: _Optional[int] = ..., segments: _Optional[int] = ..., cluster_id: _Optional[str] = ..., topic_id: _Optional[str] = ..., topic_name: _Optional[str] = ..., organization_id: _Optional[str] = ..., project_id: _Optional[str] = ...) -> None: ...

class Inventory(_message.Message):
    __slots__ = ("topic", "created_revision", "partition", "at_us", "log_start", "log_end", "bytes", "records", "oldest_us", "newest_us", "expires_us", "held", "held_from", "hold_intent_op", "held_bytes", "policy_version", "retention_ms", "retention_bytes", "retention_ms_min", "cluster_id", "topic_id", "topic_name", "organization_id", "project_id")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    CREATED_REVISION_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    AT_US_FIELD_NUMBER: _ClassVar[int]
    LOG_START_FIELD_NUMBER: _ClassVar[int]
    LOG_END_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    OLDEST_US_FIELD_NUMBER: _ClassVar[int]
    NEWEST_US_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_US_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    HELD_FROM_FIELD_NUMBER: _ClassVar[int]
    HOLD_INTENT_OP_FIELD_NUMBER: _ClassVar[int]
    HELD_BYTES_FIELD_NUMBER: _ClassVar[int]
    POLICY_VERSION_FIELD_NUMBER: _ClassVar[int]
    RETENTION_MS_FIELD_NUMBER: _ClassVar[int]
    RETENTION_BYTES_FIELD_NUMBER: _ClassVar[int]
    RETENTION_MS_MIN_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    TOPIC_NAME_FIELD_NUMBER: _ClassVar[int]
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    PROJECT_ID_FIELD_NUMBER: _ClassVar[int]
    topic: int
    created_revision: int
    partition: int
    at_us: int
    log_start: int
    log_end: int
    bytes: int
    records: int
    oldest_us: int
    newest_us: int
    expires_us: int
    held: bool
    held_from: int
    hold_intent_op: int
    held_bytes: int
    policy_version: int
    retention_ms: int
    retention_bytes: int
    retention_ms_min: int
    cluster_id: str
    topic_id: str
    topic_name: str
    organization_id: str
    project_id: str
    def __init__(self, topic: _Optional[int] = ..., created_revision: _Optional[int] = ..., partition: _Optional[int] = ..., at_us: _Optional[int] = ..., log_start: _Optional[int] = ..., log_end: _Optional[int] = ..., bytes: _Optional[int] = ..., records: _Optional[int] = ..., oldest_us: _Optional[int] = ..., newest_us: _Optional[int] = ..., expires_us: _Optional[int] = ..., held: bool = ..., held_from: _Optional[int] = ..., hold_intent_op: _Optional[int] = ..., held_bytes: _Optional[int] = ..., policy_version: _Optional[int] = ..., retention_ms: _Optional[int] = ..., retention_bytes: _Optional[int] = ..., retention_ms_min: _Optional[int] = ..., cluster_id: _Optional[str] = ..., topic_id: _Optional[str] = ..., topic_name: _Optional[str] = ..., organization_id: _Optional[str] = ..., project_id: _Optional[str] = ...) -> None: ...
