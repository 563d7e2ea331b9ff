"""The compiled tables: what shards need on the hot path, as rows of `native/include/engine.h`.

Owns the packing of `struct engine_row_*`; tests compare each size with the compiler's. A delta is
rows end to end, each padded to 8, applied whole by every shard in op order. Refuses to hold
secrets: a grant carries a digest.
"""

import struct
from typing import Final

from dataplane.metadata.state import ApiKey, DeletedTopic, Project, State, Topic

ROW_TOPIC: Final = 1
ROW_TOPIC_GONE: Final = 2
ROW_GRANT: Final = 3
ROW_GRANT_GONE: Final = 4
ROW_PROJECT: Final = 5

VERB_PRODUCE: Final = 1
VERB_CONSUME: Final = 2

TOPIC_FLAG_SYSTEM: Final = 1
TOPIC_FLAG_CLOSING: Final = 2
TOPIC_FLAG_RECREATED: Final = 4

# Bounds and defaults of what a topic may ask for.
MESSAGE_BYTES_MAX: Final = 8 * 1024 * 1024
MESSAGE_BYTES_DEFAULT: Final = 1024 * 1024
SEGMENT_BYTES_DEFAULT: Final = 64 * 1024 * 1024

# What each role may do on the data plane.
VERBS_OF_ROLE: Final[dict[str, int]] = {
    "owner": VERB_PRODUCE | VERB_CONSUME,
    "editor": VERB_PRODUCE | VERB_CONSUME,
    "viewer": VERB_CONSUME,
    "billing-viewer": 0,
}

_TOPIC: Final = struct.Struct("<HHI QQ IIII Q II qqqQ")
_GRANT: Final = struct.Struct("<HHI 16s 32s IIII q")
TOPIC_ROW_SIZE: Final = _TOPIC.size
_PROJECT: Final = struct.Struct("<HHI II II")
GRANT_ROW_SIZE: Final = _GRANT.size
PROJECT_ROW_SIZE: Final = _PROJECT.size
assert TOPIC_ROW_SIZE % 8 == 0
assert PROJECT_ROW_SIZE % 8 == 0
assert GRANT_ROW_SIZE % 8 == 0


def _padded(row: bytes) -> bytes:
    return row + bytes(-len(row) % 8)


def topic_row(state: State, topic: Topic) -> bytes:
    """One `struct engine_row_topic` that puts this topic, and its name."""
    spec = topic.spec
    name = spec.name().encode()
    row = _TOPIC.pack(
        ROW_TOPIC,
        _TOPIC.size + len(name),
        0,
        topic.number,
        topic.created_revision,
        state.organizations[spec.organization_id].number,
        state.projects[spec.project_id].number,
        spec.partitions,
        spec.message_bytes_max or MESSAGE_BYTES_DEFAULT,
        spec.segment_bytes or SEGMENT_BYTES_DEFAULT,
        (TOPIC_FLAG_SYSTEM if topic.is_system() else 0)
        | (TOPIC_FLAG_CLOSING if topic.is_closing() else 0),
        len(name),
        spec.retention_ms,
        spec.retention_bytes,
        spec.retention_ms_min,
        # A topic that is being deleted is not trimmed, however often its delete is repeated.
        0 if topic.is_closing() else topic.fence.generation,
    )
    return _padded(row + name)


def topic_gone_row(deleted: DeletedTopic, *, recreated: bool) -> bytes:
    """One row that says that a topic is gone; `recreated`: a topic of its name lives again."""
    flags = TOPIC_FLAG_RECREATED if recreated else 0
    numbers = (deleted.number, 0, 0, 0, 0, 0, 0, flags, 0, 0, 0, 0, 0)
    return _TOPIC.pack(ROW_TOPIC_GONE, _TOPIC.size, 0, *numbers)


def gone_rows_of_name(state: State, project_id: str, name: str) -> bytes:
    """Every remembered topic that had this name, with the flag that tells how the name stands."""
    return b"".join(
        _gone_row(state, deleted)
        for deleted in state.deleted_topics.values()
        if (deleted.project_id, deleted.name) == (project_id, name)
    )


def _gone_row(state: State, deleted: DeletedTopic) -> bytes:
    holder = state.topic_named(deleted.project_id, deleted.name)
    return topic_gone_row(deleted, recreated=holder is not None)


def project_row(state: State, project: Project) -> bytes:
    """One `struct engine_row_project` that puts this project, and its name."""
    name = project.name.encode()
    organization = state.organizations[project.organization_id].number
    size = _PROJECT.size + len(name)
    row = _PROJECT.pack(ROW_PROJECT, size, 0, organization, project.number, len(name), 0)
    return _padded(row + name)


def grant_row(state: State, key: ApiKey) -> bytes:
    """One `struct engine_row_grant` that puts this key."""
    spec = key.spec
    return _GRANT.pack(
        ROW_GRANT,
        _GRANT.size,
        0,
        spec.public_id.encode(),
        spec.secret_sha256,
        key.principal,
        state.organizations[spec.organization_id].number,
        state.projects[spec.project_id].number if spec.project_id else 0,
        VERBS_OF_ROLE[spec.role],
        spec.expires_at_us,
    )


def grant_gone_row(public_id: str) -> bytes:
    """One row that takes the grant of this public id away."""
    return _GRANT.pack(ROW_GRANT_GONE, _GRANT.size, 0, public_id.encode(), bytes(32), 0, 0, 0, 0, 0)


def full_tables(state: State) -> bytes:
    """The whole state as one delta over empty tables."""
    projects = sorted(state.projects.values(), key=lambda project: project.number)
    rows = [project_row(state, project) for project in projects if project.name]
    rows += [topic_row(state, topic) for topic in state.topics_by_number()]
    rows += [_gone_row(state, row) for row in state.deleted_topics.values() if row.number]
    for key_id in sorted(state.keys):
        key = state.keys[key_id]
        if key.active:
            rows.append(grant_row(state, key))
    return b"".join(rows)
