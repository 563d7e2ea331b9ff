"""Where nodes are."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from api.db.tables.nodes import Node


def addresses(session: Session, cluster_id: str) -> list[str]:
    """Where the nodes of a cluster are, in order of registration."""
    query = select(Node.address).where(Node.cluster_id == cluster_id).order_by(Node.id)
    return list(session.scalars(query))
