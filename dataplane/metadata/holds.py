"""Holds in the metadata: what shall be held, and whether every partition's log knows it (T1, T2).

    put, release (intent) -> SET_HOLD in the log of every partition (fence) -> confirm

Owns the rules of the three. An intent is for the whole topic: what a partition's log gets
(`desired_holds`) is the sum of all holds on it, so that a later intent includes all earlier ones
and a delayed fence changes nothing. A released hold is kept as long as its topic exists, so that a
delayed put finds the release. Refuses to delete a topic that is held: a hold beats every deletion.
"""

from dataclasses import replace
from typing import Final, NamedTuple

from dataplane.errors import Refused
from dataplane.metadata.outcome import NO_FENCE, Done, applied, check_fence
from dataplane.metadata.state import Fence, Hold, State, Topic
from dataplane.wire import node_pb2 as wire

HOLDS_OF_TOPIC_MAX: Final = 256
ID_BYTES_MAX: Final = 64


class DesiredHold(NamedTuple):
    """What a partition's log shall say; `held_from` None = nothing holds it."""

    intent_op: int
    held_from: int | None


def desired_holds(state: State, topic: Topic) -> dict[int, DesiredHold]:
    """By partition: those that any hold concerns, or did."""
    rows = state.holds_of(topic.spec.topic_id)
    found: dict[int, DesiredHold] = {}
    for partition in range(topic.spec.partitions):
        concerned = [row for row in rows if row.concerns(partition)]
        if concerned:
            held = [row.from_offset for row in concerned if row.is_active]
            intent_op = max(row.intent_op for row in concerned)
            found[partition] = DesiredHold(intent_op, min(held) if held else None)
    return found


def put(state: State, op: int, fence: Fence, command: wire.PutHold) -> Done:
    """The intent to hold. Raises Refused."""
    topic = _topic(state, command.hold_id, command.topic_id)
    if topic.is_closing():
        raise Refused(
            "TOPIC_CLOSING",
            f"{command.topic_id} is being deleted and takes no hold",
            hint="its records go; what must be kept had to be held before",
        )
    partitions = tuple(sorted(dict.fromkeys(command.partitions)))
    if partitions and partitions[-1] >= topic.spec.partitions:
        raise Refused(
            "INVALID_ARGUMENT",
            f"{command.topic_id} has {topic.spec.partitions} partitions, no {partitions[-1]}",
        )
    stored = state.holds.get(command.hold_id)
    if stored is not None:
        _check_place(stored, command.topic_id)
        check_fence(command.hold_id, fence, stored.fence)
        if not stored.is_active:
            raise Refused(
                "HOLD_RELEASED",
                f"{command.hold_id} was released, for ever",
                hint="make a new hold; what was trimmed meanwhile does not come back",
            )
        same = (stored.partitions, stored.from_offset) == (partitions, command.from_offset)
        if same or (fence == stored.fence and fence != NO_FENCE):
            state.holds[command.hold_id] = replace(stored, fence=fence)
            return Done(_result(topic, changed=False, op=op))
    elif len(state.holds_of(command.topic_id)) >= HOLDS_OF_TOPIC_MAX:
        raise Refused(
            "RESOURCE_EXHAUSTED",
            f"{command.topic_id} has had {HOLDS_OF_TOPIC_MAX} holds",
            hint="use a hold that is active: one case can be held once",
        )
    state.holds[command.hold_id] = Hold(
        hold_id=command.hold_id,
        topic_id=command.topic_id,
        partitions=partitions,
        from_offset=command.from_offset,
        fence=fence,
        intent_op=op,
        is_active=True,
    )
    return Done(_result(topic, changed=True, op=op), holding=topic.number)


def release(state: State, op: int, fence: Fence, command: wire.ReleaseHold) -> Done:
    """The intent to hold no longer. Raises Refused."""
    topic = _topic(state, command.hold_id, command.topic_id)
    stored = state.holds.get(command.hold_id)
    if stored is None:
        # Remembered though it never was here: a delayed put must find the release.
        stored = Hold(
            hold_id=command.hold_id,
            topic_id=command.topic_id,
            partitions=(),
            from_offset=0,
            fence=fence,
            intent_op=op,
            is_active=True,
        )
    _check_place(stored, command.topic_id)
    check_fence(command.hold_id, fence, stored.fence)
    if not stored.is_active:
        state.holds[command.hold_id] = replace(stored, fence=fence)
        return Done(_result(topic, changed=False, op=op))
    state.holds[command.hold_id] = replace(
        stored, fence=fence, intent_op=op, is_active=False, is_confirmed=False
    )
    return Done(_result(topic, changed=True, op=op), holding=topic.number)


def confirm(state: State, op: int, command: wire.ConfirmHold) -> Done:
    """Every partition's log has this intent, and with it all earlier ones. Raises Refused."""
    topic = state.topic_numbered(command.topic)
    if topic is None:
        raise Refused("TOPIC_NOT_FOUND", f"no topic has the number {command.topic}")
    rows = [row for row in state.holds_of(topic.spec.topic_id) if not row.is_confirmed]
    confirmed = [row for row in rows if row.intent_op <= command.intent_op]
    for row in confirmed:
        state.holds[row.hold_id] = replace(row, is_confirmed=True)
    if not confirmed and rows:
        raise Refused("INTENT_STALE", f"intent {command.intent_op} has been overtaken")
    return Done(_result(topic, changed=bool(confirmed), op=op))


def reopen(state: State, op: int, topic_id: str) -> bool:
    """The topic has more partitions: holds on all of them must reach the new ones.

    That is another intent: the confirmation of a workflow that began before knows fewer partitions.
    """
    rows = [row for row in state.holds_of(topic_id) if not row.partitions]
    for row in rows:
        state.holds[row.hold_id] = replace(row, intent_op=op, is_confirmed=False)
    return bool(rows)


def check_free(state: State, topic_id: str) -> None:
    """Raises Refused if anything holds the topic."""
    held = [row.hold_id for row in state.holds_of(topic_id) if row.is_active]
    if held:
        raise Refused(
            "TOPIC_HELD",
            f"{topic_id} is held by {held[0]}" + (" and others" if len(held) > 1 else ""),
            hint="release the holds first; no reason forces a deletion over one",
        )


def forget(state: State, topic_id: str) -> None:
    """The topic is gone, and so is what could be held."""
    for row in state.holds_of(topic_id):
        del state.holds[row.hold_id]


def _topic(state: State, hold_id: str, topic_id: str) -> Topic:
    if not 0 < len(hold_id.encode()) <= ID_BYTES_MAX:
        raise Refused("INVALID_ARGUMENT", f"hold_id has 1 to {ID_BYTES_MAX} bytes")
    topic = state.topics.get(topic_id)
    if topic is None:
        raise Refused("TOPIC_NOT_FOUND", f"there is no topic {topic_id} here")
    if topic.is_system():
        raise Refused("PERMISSION_DENIED", "topics of the system are never trimmed")
    return topic


def _check_place(stored: Hold, topic_id: str) -> None:
    if stored.topic_id != topic_id:
        raise Refused("OBJECT_MOVED", f"{stored.hold_id} holds {stored.topic_id}, not {topic_id}")


def _result(topic: Topic, *, changed: bool, op: int) -> wire.Result:
    return applied(number=topic.number, revision=topic.created_revision, changed=changed, op=op)
