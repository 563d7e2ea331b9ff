"""The rules of topics; the only writer of their table. The spec is stored; reconcilers apply it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pydantic import JsonValue as Json
from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from api.auth.audit_chain import Actor, Change, record_change
from api.auth.change import first_columns
from api.auth.guard import Owner
from api.auth.permissions import Caller
from api.auth.scope import project_for, stream_for, visible_to
from api.db.identifiers import new_id
from api.db.locks import locked
from api.db.tables.nodes import Node
from api.db.tables.streams import Stream
from api.db.tables.topics import Topic
from api.db.tables.work import ResourceStatus
from api.deletion.mark import refuse_deleting
from api.http.errors import (
    FieldImmutableError,
    InvalidRequestError,
    NameTakenError,
    PreconditionFailedError,
    PreconditionRequiredError,
    Violation,
)
from api.http.pagination import Page, Paging, page_of
from api.http.reply import Changed, Plan
from api.http.resource import body_json, etag, revision_wanted
from api.reconcile.conditions import is_true
from api.reconcile.operations import Target, start_operation
from api.reconcile.queue import enqueue
from api.reconcile.status import create_status, statuses
from api.topics.management import management_mode
from api.topics.partition_hours import begin_span
from api.topics.retention_plan import Shortening, growth_of, shortening_of, together
from api.topics.schemas import (
    LabelSet,
    TopicBody,
    TopicCreate,
    TopicFilter,
    TopicPatch,
    TopicSpec,
)
from api.topics.spec import DEFAULTS, effective, in_words_of_today, loses_data, only_ours
from api.topics.update_mask import masked

CONDITIONS: Final = ("Ready", "Synced", "Reachable", "Stalled", "RetentionEnforced")
FIXED: Final = ("name", "project_id", "stream_id", "cluster_id")
FIXED_SPEC: Final = ("replication_factor",)


@dataclass(frozen=True, slots=True)
class _Desired:
    """The members of a topic that are the user's."""

    spec: dict[str, Json]
    labels: dict[str, str]
    annotations: dict[str, str]
    display_name: str


def fold(name: str) -> str:
    """Names that fold alike would be one metric, so they may not be two topics."""
    return name.lower().replace(".", "_")


def create_topic(session: Session, actor: Actor, command: TopicCreate) -> Changed[TopicBody]:
    """Stores the spec of a topic, with its status, its operation and its work."""
    project = project_for(session, actor.caller, command.project_id)
    stream = stream_for(
        session,
        actor.caller,
        project_id=project.id,
        stream_id=command.stream_id,
        name=command.stream,
    )
    stream = locked(session, Stream, stream.id, shared=True)
    refuse_deleting(stream, "stream")
    folded = fold(command.name)
    taken = session.scalars(
        select(Topic).where(
            Topic.stream_id == stream.id,
            Topic.folded_name == folded,
            Topic.purged_at.is_(None),
        )
    ).first()
    if taken is not None:
        refuse_deleting(taken, "topic")
        raise NameTakenError(
            f"The stream {stream.name} has a topic {taken.name} already.", existing_id=taken.id
        )
    spec = body_json(command.spec)
    _check_spec(session, stream.cluster_id, spec)
    row = Topic(
        id=new_id("tp"),
        org_id=stream.org_id,
        project_id=stream.project_id,
        cluster_id=stream.cluster_id,
        stream_id=stream.id,
        name=command.name,
        folded_name=folded,
        spec=spec,
        finalizers=["data-plane"],
        **first_columns(actor, command),
    )
    session.add(row)
    session.flush()
    create_status(session, object_id=row.id, org_id=row.org_id, types=CONDITIONS, now=actor.now)
    begin_span(session, row, actor.now)
    return _changed(session, actor, row, "topics.create", before=None)


def patch_topic(
    session: Session,
    actor: Actor,
    *,
    topic_id: str,
    patch: TopicPatch,
    if_match: str | None,
    look: Callable[[Shortening], dict[str, Json]],
    update_mask: str = "",
) -> Changed[TopicBody]:
    """Applies a merge patch. Nothing to change: nothing is written and no generation is made.

    :param look: plans a shorter retention; only a dry run calls it.
    """
    row = locked(session, Topic, topic_id)
    refuse_deleting(row, "topic")
    wanted = revision_wanted(if_match, row.revision)
    before = topic_bodies(session, [row])[0]
    if update_mask:
        present = {"labels": row.labels, "annotations": row.annotations}
        patch = masked(patch, update_mask, present)
    _check_fixed(before, patch)
    desired = _desired(row, patch)
    now, then = effective(row.spec), effective(desired.spec)
    partitions = now.partitions, then.partitions
    _check_partitions(*partitions)
    if desired == _Desired(row.spec, row.labels, row.annotations, row.display_name):
        return Changed(before, None)
    reshaped = desired.spec != row.spec
    if reshaped:
        _check_spec(session, row.cluster_id, desired.spec)
        if if_match is None and loses_data(now, then):
            raise PreconditionRequiredError(
                "A shorter retention can delete records, so it requires If-Match.",
                hint=f'Read the topic, then send If-Match: "{etag(row.revision)}".',
            )
    # A change of the mode alone asks for nothing that could be carried out.
    to_do = management_mode(then) is None or not only_ours(row.spec, desired.spec)
    _replace(session, actor, row, wanted, desired)
    if partitions[0] != partitions[1]:
        begin_span(session, row, actor.now)
    changed = _changed(
        session,
        actor,
        row,
        "topics.update",
        before=body_json(before),
        reshaped=reshaped,
        to_do=to_do,
    )
    shortened = shortening_of(session, row, now, then, actor.now)
    return replace(changed, plan=_plan(growth_of(*partitions), shortened, look))


def _plan(
    growth: dict[str, Json] | None,
    shortened: Shortening | None,
    look: Callable[[Shortening], dict[str, Json]],
) -> Plan | None:
    """What else the change does: more partitions, fewer records, or both."""
    if shortened is None:
        return growth
    return lambda: together(growth or {}, look(shortened))


def topic_bodies(session: Session, rows: Sequence[Topic]) -> list[TopicBody]:
    """The bodies of rows, in their order."""
    found = statuses(session, [row.id for row in rows])
    names = _stream_names(session, rows)
    return [TopicBody.of(row, names[row.stream_id], found.get(row.id)) for row in rows]


def topic_page(
    session: Session, caller: Caller, which: TopicFilter, page: Paging
) -> Page[TopicBody]:
    """The topics that a caller sees, oldest first."""
    query = visible_to(select(Topic), Topic, caller).where(Topic.purged_at.is_(None))
    if which.name:
        query = query.where(Topic.folded_name == fold(which.name), Topic.name == which.name)
    if which.stream:
        streams = visible_to(select(Stream.id), Stream, caller).where(Stream.name == which.stream)
        query = query.where(Topic.stream_id.in_(streams))
    for column, parent in (
        (Topic.stream_id, which.stream_id),
        (Topic.project_id, which.project_id),
        (Topic.cluster_id, which.cluster_id),
    ):
        query = query.where(column == parent) if parent else query
    request = page.of(session, caller.org_id, "topics", which.members())
    return page_of(session, query, Topic.id, request, topic_bodies)


def stored_topic(session: Session, topic_id: str) -> TopicBody:
    """One topic as it was last observed."""
    return topic_bodies(session, [session.get_one(Topic, topic_id)])[0]


def is_ready(session: Session, topic_id: str, *, generation: int) -> bool:
    """Whether a generation of a topic became Ready."""
    status = session.get(ResourceStatus, topic_id)
    return status is not None and is_true(status.conditions, "Ready", generation)


def topic_owner(session: Session, object_id: str) -> Owner | None:
    """Whose a topic is."""
    row = session.get(Topic, object_id)
    return Owner(row.org_id, row.project_id) if row and row.purged_at is None else None


def _desired(row: Topic, patch: TopicPatch) -> _Desired:
    """The user's members after the merge, held to the rules of a creation."""
    held = LabelSet.model_validate(
        {
            "labels": _merged(row.labels, patch, "labels"),
            "annotations": _merged(row.annotations, patch, "annotations"),
        }
    )
    named = "display_name" in patch.model_fields_set
    display_name = (patch.display_name or "") if named else row.display_name
    return _Desired(_merged_spec(row.spec, patch), held.labels, held.annotations, display_name)


def _replace(session: Session, actor: Actor, row: Topic, revision: int, desired: _Desired) -> None:
    """Writes the spec if the row is still at a revision: one statement, not a read and a write."""
    result = session.execute(
        update(Topic)
        .where(Topic.id == row.id, Topic.revision == revision, Topic.deleted_at.is_(None))
        .values(
            spec=desired.spec,
            labels=desired.labels,
            annotations=desired.annotations,
            display_name=desired.display_name,
            revision=revision + 1,
            generation=row.generation + 1 if desired.spec != row.spec else row.generation,
            updated_at=actor.now,
        )
        .returning(Topic.id)
        .execution_options(synchronize_session=False)
    )
    if result.first() is None:
        raise PreconditionFailedError(
            "The topic changed while this request ran.", hint="Read it again and retry."
        )
    session.refresh(row)


def _changed(
    session: Session,
    actor: Actor,
    row: Topic,
    action: str,
    *,
    before: dict[str, Json] | None,
    reshaped: bool = True,
    to_do: bool = True,
) -> Changed[TopicBody]:
    operation_id = None
    if reshaped:
        enqueue(
            session,
            kind="topic",
            object_id=row.id,
            org_id=row.org_id,
            generation=row.generation,
            now=actor.now,
        )
    if reshaped and to_do:
        kind = "create_topic" if before is None else "update_topic"
        target = Target("topic", row.id, row.org_id, row.project_id, row.generation)
        operation_id = start_operation(session, actor, kind, target).id
    body = topic_bodies(session, [row])[0]
    record_change(
        session,
        actor,
        Change(row.org_id, action, "topic", row.id, before, body_json(body)),
    )
    return Changed(body, operation_id)


def _stream_names(session: Session, rows: Sequence[Topic]) -> dict[str, str]:
    ids = {row.stream_id for row in rows}
    query = select(Stream.id, Stream.name).where(Stream.id.in_(ids))
    return {row.id: row.name for row in session.execute(query)}


def _check_fixed(current: TopicBody, patch: TopicPatch) -> None:
    """A fixed member may come back as it is, and in no other way."""
    broken = [
        Violation(f"#/{name}", "FIELD_IMMUTABLE", "fixed at creation")
        for name in (*FIXED, "stream")
        if name in patch.model_fields_set and getattr(patch, name) != getattr(current, name)
    ]
    if "spec" in patch.model_fields_set:
        effective_now = current.status.effective
        broken += [
            Violation(f"#/spec/{name}", "FIELD_IMMUTABLE", "cannot change on this version")
            for name in FIXED_SPEC
            if _requested_again(patch.spec, name) not in (None, getattr(effective_now, name))
        ]
    if broken:
        raise FieldImmutableError(
            "A member that cannot be changed after creation has a different value.",
            hint="Create another topic with the value you want and move the producers there.",
            violations=broken,
        )


def _check_partitions(before: int, after: int) -> None:
    """Partitions only ever become more: the records of one that went would be lost."""
    if after < before:
        raise InvalidRequestError(
            f"The topic has {before} partitions and cannot have {after}.",
            code="PARTITIONS_DECREASE",
            hint="Create another topic with fewer partitions and move producers and consumers.",
            violations=[
                Violation(
                    "#/spec/partitions",
                    "PARTITIONS_DECREASE",
                    f"must be at least {before}",
                    limit=str(before),
                    actual=str(after),
                )
            ],
        )


def _requested_again(spec: TopicSpec | None, name: str) -> object:
    """What a patch makes of a member of the spec: None keeps it, and null asks for the
    default, of the member alone or of the whole spec."""
    if spec is None:
        return getattr(DEFAULTS, name)
    if name not in spec.model_fields_set:
        return None
    value = getattr(spec, name)
    return getattr(DEFAULTS, name) if value is None else value


def _check_spec(session: Session, cluster_id: str, spec: dict[str, Json]) -> None:
    desired = effective(spec)
    nodes = session.scalar(
        select(func.count()).select_from(Node).where(Node.cluster_id == cluster_id)
    )
    if desired.replication_factor > (nodes or 0):
        raise InvalidRequestError(
            f"{desired.replication_factor} replicas need as many nodes; the cluster has {nodes}.",
            hint="Lower replication_factor, or register more nodes first.",
            violations=[
                Violation(
                    "#/spec/replication_factor",
                    "NOT_ENOUGH_NODES",
                    "more replicas than nodes",
                    limit=str(nodes),
                    actual=str(desired.replication_factor),
                )
            ],
        )
    if desired.retention_ms is not None and desired.retention_ms < desired.min_retention_ms:
        raise InvalidRequestError(
            "retention_ms is less than min_retention_ms.",
            violations=[
                Violation(
                    "#/spec/retention_ms",
                    "BELOW_MINIMUM",
                    "at least min_retention_ms",
                    limit=str(desired.min_retention_ms),
                    actual=str(desired.retention_ms),
                )
            ],
        )


def _merged_spec(spec: dict[str, Json], patch: TopicPatch) -> dict[str, Json]:
    if "spec" not in patch.model_fields_set:
        return spec
    if patch.spec is None:
        return {}
    merged = in_words_of_today(spec)
    sent = body_json(patch.spec)
    for name in patch.spec.model_fields_set:
        merged.pop(name, None)
        if name in sent:
            merged[name] = sent[name]
    return body_json(TopicSpec.model_validate(merged))


def _merged(present: dict[str, str], patch: TopicPatch, member: str) -> dict[str, str]:
    if member not in patch.model_fields_set:
        return present
    sent: dict[str, str | None] | None = getattr(patch, member)
    if sent is None:
        return {}
    both = {**present, **sent}
    return {key: value for key, value in both.items() if value is not None}
