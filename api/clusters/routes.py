"""HTTP for clusters."""

from typing import Annotated

from fastapi import APIRouter, Depends
from fastapi.responses import JSONResponse

from api.auth.change import change
from api.auth.guard import Guard
from api.auth.permissions import Caller
from api.clusters.schemas import ClusterBody, ClusterCreate, ClusterFilter
from api.clusters.service import cluster_owner, cluster_page, create_cluster, read_cluster
from api.http.idempotency import RequestFacts
from api.http.pagination import Page
from api.http.reply import created
from api.http.routing import (
    READ_PROBLEMS,
    WRITE_PROBLEMS,
    DatabaseOf,
    PageOf,
    Route,
)

router = APIRouter(prefix="/v1/clusters", route_class=Route, tags=["clusters"])

Lister = Annotated[Caller, Depends(Guard("clusters:read"))]
Reader = Annotated[Caller, Depends(Guard("clusters:read", cluster_owner))]
Creator = Annotated[Caller, Depends(Guard("clusters:create"))]
Which = Annotated[ClusterFilter, Depends()]


@router.get("", operation_id="listClusters", responses=READ_PROBLEMS)
def list_clusters(
    caller: Lister, database: DatabaseOf, which: Which, page: PageOf
) -> Page[ClusterBody]:
    """Lists all clusters. Clusters belong to the operator; every organization can create streams on
    them.
    """
    with database.read() as session:
        return cluster_page(session, caller, which, page)


@router.get("/{object_id}", operation_id="getCluster", responses=READ_PROBLEMS)
def get_cluster(object_id: str, caller: Reader, database: DatabaseOf) -> ClusterBody:
    """Returns a cluster."""
    with database.read() as session:
        return read_cluster(session, object_id)


@router.post(
    "",
    operation_id="createCluster",
    status_code=201,
    response_model=ClusterBody,
    responses=WRITE_PROBLEMS,
)
def post_cluster(body: ClusterCreate, caller: Creator, facts: RequestFacts) -> JSONResponse:
    """Creates a cluster. Operators only."""
    return change(
        facts,
        caller,
        lambda session, actor: created(create_cluster(session, actor, body), "/v1/clusters"),
    )
