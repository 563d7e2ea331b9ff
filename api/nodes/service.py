"""The rules of nodes; the only writer of their table."""

from collections.abc import Sequence

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from api.auth.audit_chain import Actor, Change, record_change
from api.auth.change import first_columns
from api.auth.permissions import Caller
from api.auth.scope import visible_to
from api.db.tables.nodes import Node
from api.http.errors import NameTakenError, NotFoundError
from api.http.pagination import Page, Paging, page_of
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
        address=command.spec.address,
        **first_columns(actor, command),
    )
    session.add(row)
    session.flush()
    body = NodeBody.of(row)
    record_change(
        session, actor, Change(row.org_id, "nodes.create", "node", row.id, after=body_json(body))
    )
    return body


def node_page(session: Session, caller: Caller, cluster_id: str, page: Paging) -> Page[NodeBody]:
    """Lists the nodes of a cluster, in order of registration."""
    query = visible_to(select(Node), Node, caller).where(Node.cluster_id == cluster_id)
    request = page.of(session, caller.org_id, "nodes", {"cluster_id": cluster_id})
    return page_of(session, query, Node.id, request, _bodies)


def read_node(session: Session, cluster_id: str, node_id: str) -> NodeBody:
    """One node of a cluster.

    :raises NotFoundError: the cluster has no such node.
    """
    row = session.get(Node, node_id)
    if row is None or row.cluster_id != cluster_id:
        raise NotFoundError(f"The cluster has no node {node_id}.")
    return NodeBody.of(row)


def _bodies(_session: Session, rows: Sequence[Node]) -> list[NodeBody]:
    return [NodeBody.of(row) for row in rows]


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
