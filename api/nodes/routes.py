"""HTTP for the nodes of a cluster: the operator's business only."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import JSONResponse
from sqlalchemy import select

from api.auth.change import change
from api.auth.guard import Guard
from api.auth.permissions import Caller
from api.auth.scope import visible_to
from api.clusters.service import cluster_nodes_owner
from api.db.tables.nodes import Node
from api.http.errors import NotFoundError
from api.http.idempotency import RequestFacts
from api.http.pagination import Page, PageRequest, page_of
from api.http.reply import created
from api.http.routing import READ_PROBLEMS, WRITE_PROBLEMS, DatabaseOf, PageSize, PageToken, Route
from api.nodes.live import enliven
from api.nodes.schemas import NodeBody, NodeCreate
from api.nodes.service import register_node

router = APIRouter(prefix="/v1/clusters/{object_id}/nodes", route_class=Route, tags=["nodes"])

Reader = Annotated[Caller, Depends(Guard("nodes:read", cluster_nodes_owner))]
Live = Annotated[bool, Query(description="Also ask the node itself, for a second at most.")]
Creator = Annotated[Caller, Depends(Guard("nodes:create", cluster_nodes_owner))]


@router.get("", operation_id="listNodes", responses=READ_PROBLEMS)
def list_nodes(
    object_id: str,
    caller: Reader,
    database: DatabaseOf,
    request: Request,
    live: Live = False,
    page_size: PageSize = 0,
    page_token: PageToken = "",
) -> Page[NodeBody]:
    """The nodes of a cluster, in order of registration."""
    with database.read() as session:
        items, token = page_of(
            session,
            visible_to(select(Node), Node, caller).where(Node.cluster_id == object_id),
            Node.id,
            PageRequest(
                caller.org_id,
                (("list", "nodes"), ("cluster_id", object_id)),
                page_size,
                page_token,
                database.now(session),
            ),
            render=lambda rows: [NodeBody.of(row) for row in rows],
            key_of=lambda row: row.id,
        )
    if live:
        enliven(request.app.state.settings, items)
    return Page(items=items, next_page_token=token)


@router.get("/{node_id}", operation_id="getNode", responses=READ_PROBLEMS)
def get_node(
    object_id: str,
    node_id: str,
    caller: Reader,
    database: DatabaseOf,
    request: Request,
    live: Live = False,
) -> NodeBody:
    """One node."""
    with database.read() as session:
        row = session.get(Node, node_id)
        if row is None or row.cluster_id != object_id:
            raise NotFoundError(f"The cluster has no node {node_id}.")
        body = NodeBody.of(row)
    if live:
        enliven(request.app.state.settings, [body])
    return body


@router.post(
    "",
    operation_id="registerNode",
    status_code=201,
    response_model=NodeBody,
    responses=WRITE_PROBLEMS,
)
def post_node(
    object_id: str, body: NodeCreate, caller: Creator, facts: RequestFacts
) -> JSONResponse:
    """Registers a node, so that the control plane calls it."""
    return change(
        facts,
        caller,
        lambda session, actor: created(
            register_node(session, actor, cluster_id=object_id, command=body),
            f"/v1/clusters/{object_id}/nodes",
        ),
    )
