"""Which object a text means: an id, or ``kind/name`` as people write it.

    topic/orders           topic `orders` of stream `default`
    topic/billing/orders   topic `orders` of stream `billing`
    stream/billing  project/sales  organization/acme  key/ci  cluster/local  node/node-1
    hold/hold_..  operation/op_..  report-run/run_..

Streams and topics are looked for in the key's project, or in `default`, and then in the others. A
name means the object that has it now, and if none has, the one that had it last. This module
refuses to decide who may see what: it says whose the object is.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

from sqlalchemy import select
from sqlalchemy.orm import Session

from api.auth.guard import Owner, visible
from api.auth.permissions import Caller
from api.auth.scope import visible_to
from api.db.tables.api_keys import ApiKey
from api.db.tables.clusters import Cluster
from api.db.tables.holds import LegalHold
from api.db.tables.nodes import Node
from api.db.tables.operations import Operation
from api.db.tables.organizations import Organization
from api.db.tables.projects import Project
from api.db.tables.reports import ReportRun
from api.db.tables.streams import Stream
from api.db.tables.topics import Topic
from api.http.errors import InvalidRequestError, NotFoundError, Violation

Row: TypeAlias = (
    Organization
    | Project
    | Stream
    | Topic
    | LegalHold
    | ApiKey
    | Cluster
    | Node
    | Operation
    | ReportRun
)
Called = TypeVar("Called", Organization, Project, Stream, ApiKey, Cluster, Node)
Placed = TypeVar("Placed", Stream, Topic)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of object: its word, its permission to be read, and the kind of its work."""

    word: str
    permission: str
    model: type[Row]
    work: str = ""


KINDS: Final = {
    "org": Kind("organization", "orgs:read", Organization),
    "prj": Kind("project", "projects:read", Project, "project"),
    "st": Kind("stream", "streams:read", Stream, "stream"),
    "tp": Kind("topic", "topics:read", Topic, "topic"),
    "hold": Kind("hold", "holds:read", LegalHold, "hold"),
    "key": Kind("key", "keys:read", ApiKey, "key"),
    "cl": Kind("cluster", "clusters:read", Cluster),
    "nd": Kind("node", "nodes:read", Node),
    "op": Kind("operation", "operations:read", Operation),
    "run": Kind("report-run", "reports:read", ReportRun, "report"),
}
WORDS: Final = {kind.word: kind for kind in KINDS.values()} | {"org": KINDS["org"]}


@dataclass(frozen=True, slots=True)
class Subject:
    """An object, and what it is called."""

    kind: Kind
    row: Row
    name: str


def subject_of(session: Session, caller: Caller, text: str) -> Subject:
    """The object that a text means to a caller.

    :raises InvalidRequestError: the text is neither an id nor kind/name, or means several objects.
    :raises NotFoundError: there is none that the caller's key can see.
    """
    word, slash, name = text.partition("/")
    if slash and word in WORDS and name:
        kind = WORDS[word]
        found = _named(session, caller, kind, name)
    elif not slash and text.partition("_")[0] in KINDS:
        kind = KINDS[text.partition("_")[0]]
        found = _by_id(session, kind, text)
    else:
        raise _unreadable(text)
    seen = [row for row in found if visible(caller, owner_of(session, row))]
    if not seen:
        raise NotFoundError(
            f"The {kind.word} {name or text} does not exist, or this key has no access to it.",
            hint="Name it by its id, or as kind/name, such as topic/orders or stream/billing.",
        )
    if len(seen) > 1:
        ids = ", ".join(row.id for row in seen[:5])
        raise InvalidRequestError(
            f"{text} means several objects: {ids}.",
            hint="Use its id.",
            violations=[Violation("?object", "AMBIGUOUS", "several objects", actual=text)],
        )
    return Subject(kind, seen[0], _name_of(session, seen[0]))


def owner_of(session: Session, row: Row) -> Owner:
    """Whose an object is, a tombstone's too."""
    match row:
        case Cluster():
            return Owner(row.org_id, shared=True)
        case Node():
            return Owner(session.get_one(Cluster, row.cluster_id).org_id)
        case Project():
            return Owner(row.org_id, row.id)
        case ApiKey() | Operation():
            return Owner(row.org_id, row.project_id or "")
        case Stream() | Topic() | LegalHold():
            return Owner(row.org_id, row.project_id)
        case ReportRun():
            return Owner(row.org_id, run_id=row.id)
        case Organization():
            return Owner(row.id)


def _named(session: Session, caller: Caller, kind: Kind, name: str) -> Sequence[Row]:
    find: dict[str, Callable[[], Sequence[Row]]] = {
        "organization": lambda: _called(session, caller, Organization, name),
        "cluster": lambda: _called(session, caller, Cluster, name),
        "node": lambda: _called(session, caller, Node, name),
        "project": lambda: _latest(_called(session, caller, Project, name)),
        "key": lambda: _live_key(session, caller, name),
        "stream": lambda: _placed(session, caller, _called(session, caller, Stream, name)),
        "topic": lambda: _topics(session, caller, name),
    }
    return find[kind.word]() if kind.word in find else _by_id(session, kind, name)


def _by_id(session: Session, kind: Kind, object_id: str) -> Sequence[Row]:
    row = session.get(kind.model, object_id)
    return [row] if isinstance(row, Row) else []


def _called(session: Session, caller: Caller, model: type[Called], name: str) -> Sequence[Called]:
    """Of those that a caller sees, the ones that have or had a name, in order of creation."""
    query = visible_to(select(model), model, caller).where(model.name == name)
    return session.scalars(query.order_by(model.id)).all()


def _live_key(session: Session, caller: Caller, name: str) -> Sequence[ApiKey]:
    rows = _called(session, caller, ApiKey, name)
    live = [row for row in rows if row.revoked_at is None]
    return live or rows[-1:]


def _topics(session: Session, caller: Caller, name: str) -> Sequence[Topic]:
    stream, slash, topic = name.rpartition("/")
    streams = _called(session, caller, Stream, stream if slash else "default")
    query = visible_to(select(Topic), Topic, caller).where(
        Topic.stream_id.in_([row.id for row in streams]), Topic.name == topic
    )
    return _placed(session, caller, session.scalars(query.order_by(Topic.id)).all())


def _placed(session: Session, caller: Caller, rows: Sequence[Placed]) -> Sequence[Placed]:
    """Those of the caller's own project if there are any, else those of every project: alive
    before gone."""
    own = caller.project_id or next(
        (row.id for row in _called(session, caller, Project, "default") if row.purged_at is None),
        None,
    )
    mine = [row for row in rows if row.project_id == own]
    live = [row for row in mine or rows if row.purged_at is None]
    return live or (mine or list(rows))[-1:]


def _latest(rows: Sequence[Project]) -> Sequence[Project]:
    return [row for row in rows if row.purged_at is None] or rows[-1:]


def _name_of(session: Session, row: Row) -> str:
    if isinstance(row, Topic):
        return f"{session.get_one(Stream, row.stream_id).name}/{row.name}"
    if isinstance(row, Operation | ReportRun):
        return row.kind
    if isinstance(row, LegalHold):
        return row.id
    return row.name


def _unreadable(text: str) -> InvalidRequestError:
    fault = "neither an id nor kind/name"
    return InvalidRequestError(
        f'"{text}" is {fault}.',
        hint=f"Send an id, or a name after one of {', '.join(sorted(WORDS))} and a slash.",
        violations=[Violation("?object", "BAD_FORMAT", fault, actual=text)],
    )
