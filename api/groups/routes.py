"""HTTP for consumer groups: who reads what, and how far behind. Asked of the node with the
caller's own key, so it is true now; groups begin and end with their members, not here."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request

from api.auth.cookies import credential
from api.auth.guard import Guard
from api.auth.permissions import Caller
from api.groups.places import places_of
from api.groups.schemas import GroupBody, GroupDetail
from api.groups.service import detail, list_page
from api.http.errors import NotFoundError
from api.http.pagination import Page, last_shown, token_after
from api.http.routing import READ_PROBLEMS, DatabaseOf, IdFilter, PageOf, Route
from api.node.dependency import NodesOf
from api.node.groups import Place

router = APIRouter(prefix="/v1/groups", route_class=Route, tags=["groups"])

Reader = Annotated[Caller, Depends(Guard("groups:read", cost=5))]
Name = Annotated[str, Path(max_length=249)]


@router.get("", operation_id="listGroups", responses=READ_PROBLEMS)
def list_groups(
    request: Request,
    caller: Reader,
    database: DatabaseOf,
    nodes: NodesOf,
    page: PageOf,
    project_id: IdFilter = "",
    lag: Annotated[bool, Query(description="Include the lag of each group.")] = False,
) -> Page[GroupBody]:
    """Lists the consumer groups of a project that have ever had a member, sorted alphabetically.
    Default: the project of the key, or `default`. A page has at most 200 items.
    """
    with database.read() as session:
        places = places_of(session, caller, project_id, credential(request) or "")
        asked = page.of(session, caller.org_id, "groups", {"project_id": project_id})
        after = last_shown(session, asked)
    items, last = list_page(nodes, places, after, asked.limit(), lag=lag)
    if not last:
        return Page(items=items)
    with database.read() as session:
        return Page(items=items, next_page_token=token_after(session, asked, last))


@router.get("/{name}", operation_id="getGroup", responses=READ_PROBLEMS)
def get_group(
    name: Name,
    request: Request,
    caller: Reader,
    database: DatabaseOf,
    nodes: NodesOf,
    project_id: IdFilter = "",
) -> GroupDetail:
    """Returns a consumer group with its members and its position in each partition that it reads or
    has read.
    """
    with database.read() as session:
        places: list[Place] = places_of(session, caller, project_id, credential(request) or "")
    found = detail(nodes, places, name)
    if found is None:
        raise NotFoundError(
            f"There is no group {name} in this project.",
            code="GROUP_NOT_FOUND",
            hint="A group begins with its first member: headrace consume TOPIC --group NAME.",
        )
    return found
