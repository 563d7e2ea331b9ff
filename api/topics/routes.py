"""HTTP for topics: the spec in, spec and status out."""

import re
from functools import partial
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse

from api.auth.change import change
from api.auth.guard import Guard
from api.auth.permissions import Caller
from api.db.database import Database
from api.deletion.deletable import answer_delete
from api.deletion.mark import DeletionOf
from api.http.errors import InvalidRequestError, Violation
from api.http.idempotency import RequestFacts
from api.http.pagination import Page
from api.http.reply import changed, tagged
from api.http.resource import body_json
from api.http.routing import (
    READ_PROBLEMS,
    WRITE_PROBLEMS,
    DatabaseOf,
    IfMatch,
    PageOf,
    Route,
)
from api.node.dependency import NodesOf
from api.reconcile.wait import wait_for_state
from api.topics.deletion import delete_topic
from api.topics.live import enliven, figures_of, read_topic
from api.topics.purge import purge_topic
from api.topics.retention_plan import shortening_plan
from api.topics.schemas import (
    PartitionBody,
    TopicBody,
    TopicCreate,
    TopicFilter,
    TopicPatch,
    TopicPurgeCommand,
)
from api.topics.service import (
    create_topic,
    is_ready,
    patch_topic,
    stored_topic,
    topic_owner,
    topic_page,
)

router = APIRouter(prefix="/v1/topics", route_class=Route, tags=["topics"])

WAIT_SECONDS_MAX: Final = 60.0
WAIT_SCHEMA: Final = r"^(60(\.0{1,3})?s|[1-5]?[0-9](\.[0-9]{1,3})?s)?$"
WAIT_PATTERN: Final = re.compile(r"^([0-9]{1,3}(?:\.[0-9]{1,3})?)s$")

Lister = Annotated[Caller, Depends(Guard("topics:read"))]
Reader = Annotated[Caller, Depends(Guard("topics:read", topic_owner))]
Creator = Annotated[Caller, Depends(Guard("topics:create"))]
Updater = Annotated[Caller, Depends(Guard("topics:update", topic_owner))]
Deleter = Annotated[Caller, Depends(Guard("topics:delete", topic_owner))]
Live = Annotated[bool, Query(description="Query the node for current figures, for at most 1 s.")]
Which = Annotated[TopicFilter, Depends()]


def _live(live: Live = False) -> bool:
    return live


LiveOf = Annotated[bool, Depends(_live)]
UpdateMask = Annotated[
    str,
    Query(max_length=1024, description="`*`, or paths such as `display_name,spec.partitions`."),
]
Wait = Annotated[
    str,
    Query(
        max_length=8,
        description="Wait until the topic is ready, at most this long: `30s`. Maximum: 60s.",
        json_schema_extra={"pattern": WAIT_SCHEMA},
    ),
]


@router.get("", operation_id="listTopics", responses=READ_PROBLEMS)
def list_topics(
    caller: Lister,
    database: DatabaseOf,
    nodes: NodesOf,
    which: Which,
    live: LiveOf,
    page: PageOf,
) -> Page[TopicBody]:
    """Lists the topics that the key can access, oldest first. ``stream`` is a stream name."""
    with database.read() as session:
        shown = topic_page(session, caller, which, page)
    if live:
        enliven(database, nodes, shown.items)
    return shown


@router.get("/{object_id}", operation_id="getTopic", responses=READ_PROBLEMS)
def get_topic(
    object_id: str,
    caller: Reader,
    database: DatabaseOf,
    nodes: NodesOf,
    response: Response,
    live: Live = False,
) -> TopicBody:
    """Returns a topic. The figures of its partitions are those of ``observed_at``; with ``live``,
    the node is queried for current figures.
    """
    return tagged(response, read_topic(database, nodes, object_id, live=live))


@router.get("/{object_id}/partitions", operation_id="listTopicPartitions", responses=READ_PROBLEMS)
def list_partitions(
    object_id: str,
    caller: Reader,
    database: DatabaseOf,
    nodes: NodesOf,
    live: Live = False,
) -> Page[PartitionBody]:
    """Lists the partitions of a topic, as of ``observed_at`` or, with ``live``, with current
    figures. All partitions fit in one page.
    """
    body = read_topic(database, nodes, object_id, live=live)
    return Page(items=body.status.partitions)


@router.post(
    "",
    operation_id="createTopic",
    status_code=202,
    response_model=TopicBody,
    responses={201: {"model": TopicBody, "description": "Ready already."}, **WRITE_PROBLEMS},
)
async def post_topic(
    body: TopicCreate, caller: Creator, facts: RequestFacts, wait: Wait = ""
) -> JSONResponse:
    """Creates a topic. Returns 202 when the spec is stored, or 201 if the topic became Ready within
    ``wait``; otherwise creation continues in the background."""
    seconds = _seconds(wait)

    def create() -> JSONResponse:
        return change(
            facts,
            caller,
            lambda session, actor: changed(create_topic(session, actor, body), "/v1/topics"),
        )

    response = await run_in_threadpool(create)
    replayed = "Idempotency-Replayed" in response.headers
    if seconds == 0 or response.status_code != 202 or replayed:
        return response
    topic_id = response.headers["Location"].rpartition("/")[2]
    is_reached = partial(_is_ready, facts.database, topic_id)
    ready = await wait_for_state(facts.database, topic_id, is_reached, seconds)
    body_now = await run_in_threadpool(_read, facts.database, topic_id)
    headers = {name: response.headers[name] for name in ("Location", "ETag", "Operation-Id")}
    return JSONResponse(body_json(body_now), status_code=201 if ready else 202, headers=headers)


@router.patch(
    "/{object_id}",
    operation_id="updateTopic",
    response_model=TopicBody,
    responses={
        202: {"model": TopicBody, "description": "Stored; not applied yet."},
        **WRITE_PROBLEMS,
    },
)
def update_topic(
    object_id: str,
    body: TopicPatch,
    caller: Updater,
    facts: RequestFacts,
    nodes: NodesOf,
    if_match: IfMatch = None,
    update_mask: UpdateMask = "",
) -> JSONResponse:
    """Applies a merge patch (`application/merge-patch+json`). Returns 200 if nothing is
    left to do. The number of partitions can only increase. With ``update_mask``, each listed member
    is set to its value in the body, or to its default, and no other member changes. ``dry_run`` of
    a shorter retention queries the node for the expired records: ``plan.data_loss``, and
    ``plan.retention`` by partition with the holds that keep records; a figure that is not available
    in time is `unknown`."""
    return change(
        facts,
        caller,
        lambda session, actor: changed(
            patch_topic(
                session,
                actor,
                topic_id=object_id,
                patch=body,
                if_match=if_match,
                look=partial(shortening_plan, nodes),
                update_mask=update_mask,
            ),
            "/v1/topics",
        ),
    )


@router.post(
    "/{object_id}:purge",
    operation_id="deleteTopicRecords",
    status_code=202,
    response_model=TopicBody,
    responses=WRITE_PROBLEMS,
)
def purge_records(
    object_id: str,
    body: TopicPurgeCommand,
    caller: Deleter,
    facts: RequestFacts,
    nodes: NodesOf,
    if_match: IfMatch = None,
) -> JSONResponse:
    """Deletes the records before an offset in each listed partition. Requires If-Match. Records
    under a legal hold are kept. If the cluster refuses, the operation reports the reason and the
    purge is dropped. ``dry_run`` returns the number of records, from current figures if the node
    responds."""
    figures = figures_of(facts.database, nodes, object_id)
    return change(
        facts,
        caller,
        lambda session, actor: changed(
            purge_topic(
                session,
                actor,
                topic_id=object_id,
                places=body.partitions,
                if_match=if_match,
                figures=figures,
            ),
            "/v1/topics",
        ),
    )


@router.delete(
    "/{object_id}",
    operation_id="deleteTopic",
    status_code=202,
    response_model=TopicBody,
    responses=WRITE_PROBLEMS,
)
def remove_topic(
    object_id: str, request: Request, caller: Deleter, facts: RequestFacts, deletion: DeletionOf
) -> JSONResponse:
    """Deletes a topic with all its data. Writes are refused immediately; each partition is sealed
    and its last usage metered, then the cluster removes the topic. Requires If-Match. Until then,
    reads return the topic with the condition Deleting and its reason; afterwards they return 404,
    and the name, but not the id, can be reused. Deleting it again returns 202 with the same
    operation.
    """
    return answer_delete(
        request,
        caller,
        facts,
        deletion,
        lambda session, actor: delete_topic(session, actor, topic_id=object_id, deletion=deletion),
        "/v1/topics",
    )


def _seconds(wait: str) -> float:
    if not wait:
        return 0.0
    match = WAIT_PATTERN.match(wait)
    if match is None or float(match.group(1)) > WAIT_SECONDS_MAX:
        raise InvalidRequestError(
            "wait is not a number of seconds up to 60, such as 30s.",
            violations=[Violation("?wait", "BAD_FORMAT", "e.g. 30s", limit="60s", actual=wait)],
        )
    return float(match.group(1))


def _is_ready(database: Database, topic_id: str) -> bool:
    """Whether the first generation became Ready."""
    with database.read() as session:
        return is_ready(session, topic_id, generation=1)


def _read(database: Database, topic_id: str) -> TopicBody:
    with database.read() as session:
        return stored_topic(session, topic_id)
