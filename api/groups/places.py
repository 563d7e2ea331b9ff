"""Where a project's groups may be: the clusters that hold a stream of it."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from api.auth.permissions import Caller
from api.db.tables.projects import Project
from api.db.tables.streams import Stream
from api.http.errors import NotFoundError
from api.node.addresses import addresses
from api.node.groups import Place


def places_of(session: Session, caller: Caller, project_id: str, bearer: str) -> list[Place]:
    """Where a project's groups may be: every cluster that holds a stream of it, in order of ids.
    Without ``project_id``: the key's project, or `default`.

    :raises NotFoundError: there is no such project that the caller can see.
    """
    wanted = project_id or caller.project_id
    query = select(Project).where(Project.org_id == caller.org_id, Project.purged_at.is_(None))
    query = query.where(Project.id == wanted if wanted else Project.name == "default")
    project = session.scalars(query).first()
    if project is None or caller.project_id not in (None, project.id):
        raise NotFoundError(
            f"There is no project {wanted or 'default'} that this key can see.",
            hint="`headrace project list` says which there are; name one with ?project_id=.",
        )
    clusters = select(Stream.cluster_id).where(Stream.project_id == project.id).distinct()
    return [
        Place(cluster_id, found[0], project.id, project.name, bearer)
        for cluster_id in session.scalars(clusters.order_by(Stream.cluster_id))
        if (found := addresses(session, cluster_id))
    ]
