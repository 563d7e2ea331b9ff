"""Where nodes are."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from api.db.database import Database
from api.db.tables.nodes import Node


def addresses(session: Session, cluster_id: str) -> list[str]:
    """Where the nodes of a cluster are, in order of registration."""
    query = select(Node.address).where(Node.cluster_id == cluster_id).order_by(Node.id)
    return list(session.scalars(query))


def registrations(database: Database) -> dict[str, str]:
    """The addresses of all nodes, each with the nodes there as they were registered last."""
    query = select(Node.address, Node.id, Node.created_at, Node.revision).order_by(Node.id)
    found: dict[str, str] = {}
    with database.read() as session:
        for address, node_id, created_at, revision in session.execute(query):
            one = f"{node_id} {created_at.isoformat()} {revision}"
            found[address] = f"{found[address]}, {one}" if address in found else one
    return found
