"""Where a project's groups may be: the clusters that hold a stream of it."""

from typing import Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from api.auth.permissions import Caller
from api.auth.scope import project_for, visible_to
from api.db.tables.streams import Stream
from api.node.addresses import addresses
from api.node.groups import Place

HINT: Final = "`headrace project list` says which there are; name one with ?project_id=."


def places_of(session: Session, caller: Caller, project_id: str, bearer: str) -> list[Place]:
    """Where a project's groups may be: every cluster that holds a stream of it, in order of ids.
    Without ``project_id``: the key's project, or `default`.

    :raises NotFoundError: there is no such project that the caller can see.
    """
    project = project_for(session, caller, project_id, hint=HINT)
    clusters = visible_to(select(Stream.cluster_id), Stream, caller)
    clusters = clusters.where(Stream.project_id == project.id).distinct()
    return [
        Place(cluster_id, found[0], project.id, project.name, bearer)
        for cluster_id in session.scalars(clusters.order_by(Stream.cluster_id))
        if (found := addresses(session, cluster_id))
    ]
