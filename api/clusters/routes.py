"""HTTP for clusters."""

from typing import Annotated

from fastapi import APIRouter, Depends
from fastapi.responses import JSONResponse
from sqlalchemy import select

from api.auth.change import change
from api.auth.guard import Guard
from api.auth.permissions import Caller
from api.auth.scope import visible_to
from api.clusters.schemas import ClusterBody, ClusterCreate
from api.clusters.service import cluster_owner, create_cluster
from api.db.tables.clusters import Cluster
from api.http.idempotency import RequestFacts
from api.http.pagination import Page, PageRequest, page_of
from api.http.reply import created
from api.http.routing import (
    READ_PROBLEMS,
    WRITE_PROBLEMS,
    DatabaseOf,
    NameFilter,
    PageSize,
    PageToken,
    Route,
)

router = APIRouter(prefix="/v1/clusters", route_class=Route, tags=["clusters"])

Lister = Annotated[Caller, Depends(Guard("clusters:read"))]
Reader = Annotated[Caller, Depends(Guard("clusters:read", cluster_owner))]
Creator = Annotated[Caller, Depends(Guard("clusters:create"))]


@router.get("", operation_id="listClusters", responses=READ_PROBLEMS)
def list_clusters(
    caller: Lister,
    database: DatabaseOf,
    name: NameFilter = "",
    page_size: PageSize = 0,
    page_token: PageToken = "",
) -> Page[ClusterBody]:
    """Every cluster: they are the operator's, and any organization may put streams on them."""
    with database.read() as session:
        query = visible_to(select(Cluster), Cluster, caller)
        if name:
            query = query.where(Cluster.name == name)
        items, token = page_of(
            session,
            query,
            Cluster.id,
            PageRequest(
                caller.org_id,
                (("list", "clusters"), ("name", name)),
                page_size,
                page_token,
                database.now(session),
            ),
            render=lambda rows: [ClusterBody.of(row) for row in rows],
            key_of=lambda row: row.id,
        )
    return Page(items=items, next_page_token=token)


@router.get("/{object_id}", operation_id="getCluster", responses=READ_PROBLEMS)
def get_cluster(object_id: str, caller: Reader, database: DatabaseOf) -> ClusterBody:
    """One cluster."""
    with database.read() as session:
        return ClusterBody.of(session.get_one(Cluster, object_id))


@router.post(
    "",
    operation_id="createCluster",
    status_code=201,
    response_model=ClusterBody,
    responses=WRITE_PROBLEMS,
)
def post_cluster(body: ClusterCreate, caller: Creator, facts: RequestFacts) -> JSONResponse:
    """Creates a cluster. Only the operator may."""
    return change(
        facts,
        caller,
        lambda session, actor: created(create_cluster(session, actor, body), "/v1/clusters"),
    )
