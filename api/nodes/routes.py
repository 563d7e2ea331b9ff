"""HTTP for the nodes of a cluster: the operator's business only."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from fastapi.responses import JSONResponse

from api.auth.change import change
from api.auth.guard import Guard
from api.auth.permissions import Caller
from api.clusters.service import cluster_nodes_owner
from api.http.idempotency import RequestFacts
from api.http.pagination import Page
from api.http.reply import created
from api.http.routing import READ_PROBLEMS, WRITE_PROBLEMS, DatabaseOf, PageOf, Route
from api.node.dependency import NodesOf
from api.nodes.live import enliven
from api.nodes.schemas import NodeBody, NodeCreate
from api.nodes.service import node_page, read_node, register_node

router = APIRouter(prefix="/v1/clusters/{object_id}/nodes", route_class=Route, tags=["nodes"])

Reader = Annotated[Caller, Depends(Guard("nodes:read", cluster_nodes_owner))]
Live = Annotated[bool, Query(description="Also query the node itself, for at most 1 s.")]
Creator = Annotated[Caller, Depends(Guard("nodes:create", cluster_nodes_owner))]


@router.get("", operation_id="listNodes", responses=READ_PROBLEMS)
def list_nodes(
    object_id: str,
    caller: Reader,
    database: DatabaseOf,
    nodes: NodesOf,
    page: PageOf,
    live: Live = False,
) -> Page[NodeBody]:
    """Lists the nodes of a cluster, in order of registration."""
    with database.read() as session:
        shown = node_page(session, caller, object_id, page)
    if live:
        enliven(nodes, shown.items)
    return shown


@router.get("/{node_id}", operation_id="getNode", responses=READ_PROBLEMS)
def get_node(
    object_id: str,
    node_id: str,
    caller: Reader,
    database: DatabaseOf,
    nodes: NodesOf,
    live: Live = False,
) -> NodeBody:
    """Returns a node."""
    with database.read() as session:
        body = read_node(session, object_id, node_id)
    if live:
        enliven(nodes, [body])
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
    """Registers a node in a cluster."""
    return change(
        facts,
        caller,
        lambda session, actor: created(
            register_node(session, actor, cluster_id=object_id, command=body),
            f"/v1/clusters/{object_id}/nodes",
        ),
    )
