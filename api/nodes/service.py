"""The rules of nodes; the only writer of their table."""

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from api.auth.audit_chain import Actor, Change, record_change
from api.db.tables.nodes import Node
from api.http.errors import NameTakenError
from api.http.resource import body_json
from api.nodes.schemas import NodeBody, NodeCreate


def register_node(
    session: Session, actor: Actor, *, cluster_id: str, command: NodeCreate
) -> NodeBody:
    """A node of a cluster, found from now on at its address."""
    taken = session.scalars(
        select(Node).where(
            Node.cluster_id == cluster_id, or_(Node.name == command.name, Node.id == command.id)
        )
    ).first()
    if taken is not None:
        raise NameTakenError(
            f"The cluster has a node {taken.name} with the id {taken.id} already.",
            existing_id=taken.id,
        )
    row = Node(
        id=command.id,
        org_id=actor.caller.org_id,
        cluster_id=cluster_id,
        name=command.name,
        display_name=command.display_name,
        labels=command.labels,
        annotations=command.annotations,
        address=command.spec.address,
        generation=1,
        revision=1,
        created_at=actor.now,
        updated_at=actor.now,
        created_by=actor.caller.principal_id,
    )
    session.add(row)
    session.flush()
    body = NodeBody.of(row)
    record_change(
        session, actor, Change(row.org_id, "nodes.create", "node", row.id, after=body_json(body))
    )
    return body


def move_node(session: Session, actor: Actor, *, node_id: str, address: str) -> None:
    """The node is found at another address from now on; nothing happens if it is the same."""
    row = session.get_one(Node, node_id)
    if row.address == address:
        return
    before = body_json(NodeBody.of(row))
    row.address = address
    row.generation += 1
    row.revision += 1
    row.updated_at = actor.now
    record_change(
        session,
        actor,
        Change(row.org_id, "nodes.update", "node", row.id, before, body_json(NodeBody.of(row))),
    )
