"""Passes over topics that are not reconciled: paused ones, about which no call is made, and
unmanaged ones, which are observed and not changed.

A pass that began earlier may still be calling a node when the mode is stored. Passes over one
object are sequential, so no worker acts once a condition says ``Paused`` of the present generation.
"""

from dataclasses import replace
from typing import Final

from api.db.database import Database
from api.db.locks import locked
from api.db.tables.topics import Topic, TopicPurge
from api.node.failure import FailureKind, NodeFailure
from api.reconcile.conditions import Condition
from api.reconcile.operations import PURGE, fail_operations
from api.reconcile.outcome import Converged, Observation, Outcome
from api.reconcile.queue import Claim, holds
from api.topics.management import PAUSED, UNMANAGED, ManagementMode, why_ended, why_not_purged

MESSAGE: Final = "spec.paused: reconciliation is paused"
ASPECTS: Final = ("Ready", "Synced", "Reachable", "Stalled", "RetentionEnforced")


def leave_paused(database: Database, item: Claim, generation: int) -> Outcome:
    """Makes no call. The last observation stays shown, with its time."""
    forget_purge(database, item, PAUSED)
    conditions = tuple(Condition(aspect, "Unknown", "Paused", MESSAGE) for aspect in ASPECTS)
    return Converged(Observation(generation, conditions, ended=why_ended(PAUSED)))


def leave_unmanaged(found: Observation, differences: str) -> Outcome:
    """The cluster differs from the spec, and it stays so. Pure."""
    message = f"spec.managed is false, so this stays: {differences}"
    conditions = (
        Condition("Ready", "False", "Unmanaged", message),
        Condition("Synced", "False", "Unmanaged", message),
        Condition("Reachable", "True", "NodeAnswered"),
        Condition("Stalled", "False", "Progressing"),
        Condition("RetentionEnforced", "Unknown", "Unmanaged", message),
    )
    return Converged(replace(found, conditions=conditions, ended=why_ended(UNMANAGED)))


def forget_purge(database: Database, item: Claim, why: ManagementMode) -> None:
    """A purge that was not carried out in time is not carried out later."""
    with database.read() as session:
        if session.get(TopicPurge, item.object_id) is None:
            return
    with database.write() as session:
        locked(session, Topic, item.object_id)
        if not holds(session, item, database.now(session)):
            raise NodeFailure(FailureKind.CONFLICT, "LEASE_LOST", "Another worker reconciles it.")
        stored = session.get(TopicPurge, item.object_id)
        if stored is not None:
            session.delete(stored)
            now = database.now(session)
            fail_operations(session, item.object_id, why_not_purged(why), now, kind=PURGE)
