"""What nodes say of themselves now: one bounded question to each, all at once.

A node that does not answer in time is a condition of its body and never an error of the read.
"""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Final

from api.http.resource import ConditionBody
from api.node.client import NODE_BUSY, NodeClient
from api.node.failure import NodeFailure
from api.node.pool import NodePool
from api.nodes.schemas import NodeBody, NodeSaid

DEADLINE_SECONDS: Final = 1.0
AT_ONCE: Final = 16


def enliven(nodes: NodePool, bodies: Sequence[NodeBody]) -> None:
    """Puts into bodies what their nodes answer, and the condition Reachable."""
    if not bodies:
        return
    client = NodeClient(nodes, deadline_seconds=DEADLINE_SECONDS)
    with ThreadPoolExecutor(min(AT_ONCE, len(bodies))) as threads:
        list(threads.map(lambda body: _ask(client, body), bodies))


def _ask(client: NodeClient, body: NodeBody) -> None:
    began = time.monotonic()
    try:
        reply = client.node_status(body.spec.address)
    except NodeFailure as failure:
        reachable = "Unknown" if failure.code == NODE_BUSY else "False"
        body.status.conditions = [_reachable(body, reachable, failure.code, failure.message)]
        return
    now = datetime.now(UTC)
    if reply.node_id != body.id:
        why = f"Another node answers at {body.spec.address}: {reply.node_id}."
        body.status.conditions = [_reachable(body, "False", "ANOTHER_NODE", why)]
        return
    body.status.said = NodeSaid(
        version=reply.node.version,
        shards=reply.node.shards,
        incarnation=reply.incarnation,
        metadata_op=reply.metadata_op,
        started_at=datetime.fromtimestamp(reply.node.started_us / 1_000_000, UTC),
        answered_at=now,
        answer_ms=round((time.monotonic() - began) * 1000),
        warning=reply.node.warning,
    )
    reason = "WARNING" if reply.node.warning else "ANSWERS"
    body.status.conditions = [_reachable(body, "True", reason, reply.node.warning)]


def _reachable(body: NodeBody, status: str, reason: str, message: str) -> ConditionBody:
    return ConditionBody(
        type="Reachable",
        status=status,
        reason=reason,
        message=message,
        observed_generation=body.generation,
        last_transition_at=datetime.now(UTC),
    )
