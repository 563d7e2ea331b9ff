"""The rules of clusters; the only writer of their table."""

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from api.auth.audit_chain import Actor, Change, record_change
from api.auth.change import first_columns
from api.auth.guard import Owner
from api.auth.permissions import Caller
from api.auth.scope import visible_to
from api.clusters.schemas import ClusterBody, ClusterCreate, ClusterFilter
from api.db.identifiers import new_id
from api.db.tables.clusters import Cluster
from api.http.errors import InvalidRequestError, NameTakenError, NotFoundError, Violation
from api.http.pagination import Page, Paging, page_of
from api.http.resource import body_json


def create_cluster(
    session: Session, actor: Actor, command: ClusterCreate, *, cluster_id: str | None = None
) -> ClusterBody:
    """A cluster of the operator's organization. Bootstrap brings the id the node knows already."""
    taken = session.scalars(select(Cluster).where(Cluster.name == command.name)).first()
    if taken is not None:
        raise NameTakenError(f"There is a cluster {command.name} already.", existing_id=taken.id)
    row = Cluster(
        id=cluster_id or new_id("cl"),
        org_id=actor.caller.org_id,
        name=command.name,
        **first_columns(actor, command),
    )
    session.add(row)
    session.flush()
    body = ClusterBody.of(row)
    record_change(
        session,
        actor,
        Change(row.org_id, "clusters.create", "cluster", row.id, after=body_json(body)),
    )
    return body


def only_cluster(session: Session) -> Cluster | None:
    """The cluster that is meant when none is named: the only one there is."""
    rows = session.scalars(select(Cluster).limit(2)).all()
    return rows[0] if len(rows) == 1 else None


def cluster_for(session: Session, cluster_id: str | None) -> Cluster:
    """The named cluster, or the only one."""
    if cluster_id is None:
        row = only_cluster(session)
        if row is None:
            raise InvalidRequestError(
                "There is not exactly one cluster, so cluster_id must say which.",
                violations=[Violation("#/cluster_id", "REQUIRED", "the id of a cluster")],
            )
        return row
    named = session.get(Cluster, cluster_id)
    if named is None:
        raise NotFoundError(f"There is no cluster {cluster_id}.")
    return named


def cluster_bodies(_session: Session, rows: Sequence[Cluster]) -> list[ClusterBody]:
    """The bodies of rows, in their order."""
    return [ClusterBody.of(row) for row in rows]


def cluster_page(
    session: Session, caller: Caller, which: ClusterFilter, page: Paging
) -> Page[ClusterBody]:
    """The clusters that a caller sees, oldest first."""
    query = visible_to(select(Cluster), Cluster, caller)
    request = page.of(session, caller.org_id, "clusters", which.members())
    return page_of(session, query.filter_by(**which.given()), Cluster.id, request, cluster_bodies)


def read_cluster(session: Session, cluster_id: str) -> ClusterBody:
    """Returns a cluster."""
    return ClusterBody.of(session.get_one(Cluster, cluster_id))


def cluster_owner(session: Session, object_id: str) -> Owner | None:
    """Clusters are shared: every organization may read them."""
    row = session.get(Cluster, object_id)
    return Owner(row.org_id, shared=True) if row else None


def cluster_nodes_owner(session: Session, object_id: str) -> Owner | None:
    """The nodes of a cluster are the operator's business only."""
    row = session.get(Cluster, object_id)
    return Owner(row.org_id) if row else None
