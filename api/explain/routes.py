"""HTTP for explanations: why is this object as it is, and what comes next."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request

from api.auth.guard import Guard, demand
from api.auth.permissions import Caller
from api.db.tables.nodes import Node
from api.explain.schemas import ExplanationBody, Step
from api.explain.service import explain
from api.explain.subjects import KINDS, WORDS, subject_of
from api.http.routing import READ_PROBLEMS, DatabaseOf, Route
from api.node.client import NodeClient
from api.node.dependency import NodesOf
from api.node.failure import NodeFailure
from api.node.pool import NodePool

router = APIRouter(prefix="/v1/explain", route_class=Route, tags=["explain"])

DEADLINE_SECONDS = 1.0
PRINTABLE = r"[^\u0000-\u001f\u007f]"
NAMED_SCHEMA = f"^(({'|'.join(KINDS)})_[a-z0-9]+|({'|'.join(WORDS)})/{PRINTABLE}+)$"

Asker = Annotated[Caller, Depends(Guard("orgs:read"))]
Named = Annotated[
    str,
    Query(
        alias="object",
        min_length=1,
        max_length=600,
        description="An id, or kind/name: `topic/orders`, `topic/billing/orders`, `key/ci`.",
        json_schema_extra={"pattern": NAMED_SCHEMA},
    ),
]


@router.get("", operation_id="getExplanation", responses=READ_PROBLEMS)
def get_explanation(
    named: Named, request: Request, caller: Asker, database: DatabaseOf, nodes: NodesOf
) -> ExplanationBody:
    """Explains the state of an object: requests, commands, responses, conditions, operations, and
    the time and reason of the next pass. Removed objects are explained too. Requires permission to
    read objects of this kind."""
    with database.read() as session:
        subject = subject_of(session, caller, named)
        now = database.now(session)
    demand(request, caller, subject.kind.permission, subject.row.id)
    extra: list[Step] = []
    if isinstance(subject.row, Node):
        extra.append(_asked(nodes, subject.row, now))
    with database.read() as session:
        return explain(session, caller, subject, now, extra)


def _asked(nodes: NodePool, node: Node, now: datetime) -> Step:
    """What a node says of itself, if it does."""
    client = NodeClient(nodes, deadline_seconds=DEADLINE_SECONDS)
    what = f"queried {node.address}"
    try:
        reply = client.describe([node.address], topic_ids=[node.id])
    except NodeFailure as failure:
        return Step(at=now, what=what, why="for this explanation", next=str(failure))
    answer = f"it answered: cluster {reply.cluster_id}, metadata op {reply.metadata_op}"
    return Step(at=now, what=what, why="for this explanation", next=answer)
