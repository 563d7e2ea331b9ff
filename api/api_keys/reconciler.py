"""API keys: every cluster knows the live ones and has forgotten the revoked ones."""

from dataclasses import dataclass
from typing import Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from api.db.database import Database, meta_value, microseconds
from api.db.tables.api_keys import ApiKey
from api.db.tables.clusters import Cluster
from api.node.addresses import addresses
from api.node.client import NodeClient
from api.node.failure import FailureKind, NodeFailure
from api.node.fence import Fence
from api.reconcile.commands import command_record
from api.reconcile.conditions import Condition
from api.reconcile.outcome import CommandRecord, Converged, Observation, Outcome
from api.reconcile.queue import Claim
from dataplane.wire import node_pb2

KIND: Final = "key"


@dataclass(frozen=True, slots=True)
class Desired:
    """A key as it shall be, on every cluster."""

    generation: int
    revoked: bool
    fence: Fence
    key: node_pb2.PutKey
    clusters: tuple[tuple[str, ...], ...]


def plan(*, revoked: bool, observed: node_pb2.KeyStatus | None) -> str | None:
    """PUT, REVOKE, or nothing. Pure. Only a revocation that the cluster holds settles one: a PutKey
    whose answer was lost may still be on its way to a cluster that knows nothing of the key."""
    if revoked:
        return None if observed is not None and not observed.active else "REVOKE"
    return None if observed is not None and observed.active else "PUT"


class KeyReconciler:
    """Makes one key be on the clusters as its row says."""

    def __init__(self, database: Database, nodes: NodeClient) -> None:
        self._database = database
        self._nodes = nodes

    def generation(self, object_id: str) -> int:
        """The generation a failed pass has looked at."""
        with self._database.read() as session:
            return session.get_one(ApiKey, object_id).generation

    def reconcile(self, item: Claim) -> Outcome:
        """One pass over every cluster; one that fails does not keep the others from it."""
        with self._database.read() as session:
            desired = _desired(session, item)
        failures: list[NodeFailure] = []
        commands: list[CommandRecord] = []
        for cluster in desired.clusters:
            try:
                commands += self._bring(cluster, desired)
            except NodeFailure as failure:
                failures.append(failure)
        if failures:
            raise failures[0]
        if not desired.clusters:
            raise NodeFailure(FailureKind.UNREACHABLE, "NO_CLUSTERS", "There is no cluster yet.")
        active = Condition(
            "Active",
            "False" if desired.revoked else "True",
            "Revoked" if desired.revoked else "Propagated",
        )
        conditions = (
            active,
            Condition("Ready", "True", "Propagated"),
            Condition("Reachable", "True", "NodeAnswered"),
            Condition("Stalled", "False", "Progressing"),
        )
        return Converged(
            Observation(desired.generation, conditions, ready=True, commands=tuple(commands))
        )

    def _bring(self, cluster: tuple[str, ...], desired: Desired) -> list[CommandRecord]:
        reply = self._nodes.describe(cluster, key_ids=[desired.key.key_id])
        observed = next((key for key in reply.keys if key.key_id == desired.key.key_id), None)
        match plan(revoked=desired.revoked, observed=observed):
            case "PUT":
                answer = self._nodes.put_key(cluster, desired.fence, desired.key)
                return [command_record("PutKey", "not on the cluster yet", desired.fence, answer)]
            case "REVOKE":
                answer = self._nodes.revoke_key(cluster, desired.fence, desired.key.key_id)
                return [command_record("RevokeKey", "it was revoked", desired.fence, answer)]
        return []


def _desired(session: Session, item: Claim) -> Desired:
    row = session.get_one(ApiKey, item.object_id)
    clusters = session.scalars(select(Cluster.id).order_by(Cluster.id)).all()
    return Desired(
        generation=row.generation,
        revoked=row.revoked_at is not None,
        fence=Fence(int(meta_value(session, "db_epoch")), row.generation, item.lease_token),
        key=node_pb2.PutKey(
            key_id=row.id,
            public_id=row.public_id,
            secret_sha256=row.secret_sha256,
            organization_id=row.org_id,
            project_id=row.project_id or "",
            role=row.role,
            expires_at_us=microseconds(row.expires_at) if row.expires_at else 0,
        ),
        clusters=tuple(tuple(addresses(session, cluster)) for cluster in clusters),
    )
