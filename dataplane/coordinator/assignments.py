"""Assignments as they cross the wire.

Owns the message of a session's assignment and of one partition in it, with the names of topics at
this moment. Refuses to decide who reads what: the metadata has decided.
"""

from dataplane.groups.membership import PartitionAssignment, SessionAssignment
from dataplane.metadata.state import State
from headrace.wire import stream_pb2 as wire


def assignment_message(state: State, assignment: SessionAssignment) -> wire.Assignment:
    """What a session reads and what it must stop reading."""
    return wire.Assignment(
        generation=assignment.generation,
        assigned=[partition_message(state, each) for each in assignment.assigned()],
        revoked=[partition_message(state, each) for each in assignment.revoked()],
        members=assignment.members,
    )


def partition_message(state: State, assigned: PartitionAssignment) -> wire.Assigned:
    """One partition with its fence and the offset to go on from."""
    topic = state.topic_numbered(assigned.place.topic)
    return wire.Assigned(
        topic=assigned.place.topic,
        created_revision=0 if topic is None else topic.created_revision,
        partition=assigned.place.partition,
        generation=assigned.generation,
        has_committed=assigned.has_committed,
        committed=assigned.committed,
        name="" if topic is None else topic.spec.name(),
    )
