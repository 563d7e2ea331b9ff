"""What the host counts, by the names operators see (docs/operating/runbook.md).

Owns names and help texts only; each figure is read where it is kept, when somebody asks.
"""

from dataplane.coordinator.handover import Handover
from dataplane.engine.ring import Ring
from dataplane.engine.rpc import Bridge
from dataplane.evidence.counters import Counters
from dataplane.evidence.inventory import Inventory
from dataplane.evidence.publisher import Metering
from dataplane.metadata.replica import MetadataReplica
from dataplane.observability.telemetry import Number, NumbersByCode
from dataplane.services.groups import GroupService
from dataplane.workflows.delete_topic import Deletion
from dataplane.workflows.legal_holds import Holding


def of_calls(ring: Ring, bridge: Bridge) -> tuple[Number | NumbersByCode, ...]:
    """The ring and the calls that crossed it."""
    return (
        Number(
            "headrace_host_frames_received",
            "Frames taken from the engine.",
            lambda: ring.frames_received,
        ),
        Number(
            "headrace_host_frames_sent", "Frames given to the engine.", lambda: ring.frames_sent
        ),
        Number(
            "headrace_host_replies_late",
            "Replies that arrived after their deadline.",
            lambda: ring.replies_late,
        ),
        Number(
            "headrace_host_call_frames_late",
            "Frames of calls that had ended.",
            lambda: bridge.frames_late,
        ),
        Number(
            "headrace_host_calls_open", "Cold calls under way.", bridge.calls_count, rises=False
        ),
        NumbersByCode(
            "headrace_host_calls", "Cold calls ended, by code.", lambda: bridge.finished_by_code
        ),
    )


def of_groups(
    replica: MetadataReplica, groups: GroupService, handover: Handover
) -> tuple[Number, ...]:
    """The metadata and the groups in it."""
    return (
        Number(
            "headrace_metadata_ops_applied",
            "Metadata ops applied since the start.",
            lambda: replica.ops_applied,
        ),
        Number(
            "headrace_metadata_snapshots_too_large",
            "Snapshots that fit into no frame: the metadata's log cannot be shortened.",
            lambda: replica.snapshots_refused,
        ),
        Number("headrace_metadata_op", "The last metadata op applied.", replica.op, rises=False),
        Number(
            "headrace_group_sessions",
            "Group members connected here.",
            groups.sessions_count,
            rises=False,
        ),
        Number(
            "headrace_group_pictures",
            "Assignments rendered for members: one each whenever a member's picture changes.",
            groups.pictures_count,
        ),
        Number(
            "headrace_group_moves_open",
            "Partitions changing hands.",
            groups.moves_count,
            rises=False,
        ),
        Number(
            "headrace_group_moves", "Partitions that changed hands.", lambda: handover.completed
        ),
        Number(
            "headrace_group_releases_timed_out",
            "Owners that did not release in time.",
            lambda: handover.timed_out,
        ),
    )


def of_usage(metering: Metering, counters: Counters) -> tuple[Number, ...]:
    """Windows and counters on their way to `_usage`."""
    return (
        Number(
            "headrace_usage_counters_spooled",
            "Counters made durable, since the start.",
            lambda: counters.spooled,
        ),
        Number(
            "headrace_usage_counters_merged",
            "Counters that grew another one, because it could not be spooled yet.",
            lambda: counters.merged,
        ),
        Number(
            "headrace_usage_counters_hours_merged",
            "Of those, counters that grew one of an earlier hour, because too many waited.",
            lambda: counters.hours_merged,
        ),
        Number("headrace_usage_published", "Windows in `_usage`, ever.", metering.published_count),
        Number(
            "headrace_usage_pending",
            "Windows not yet in `_usage`.",
            metering.pending_count,
            rises=False,
        ),
        Number(
            "headrace_usage_retries",
            "Repeated attempts to spool or publish.",
            lambda: metering.retries,
        ),
        Number(
            "headrace_usage_spools_lost",
            "Spools that were found missing or older than `_usage`, since the start.",
            lambda: metering.spools_lost,
        ),
    )


def of_retention(retention: Metering, inventory: Inventory) -> tuple[Number, ...]:
    """Trims on their way to `_retention`, and pictures of what is left."""
    return (
        Number(
            "headrace_retention_published",
            "Trims in `_retention`, ever.",
            retention.published_count,
        ),
        Number(
            "headrace_retention_pending",
            "Trims not yet in `_retention`.",
            retention.pending_count,
            rises=False,
        ),
        Number(
            "headrace_retention_retries",
            "Repeated attempts to spool or publish a trim.",
            lambda: retention.retries,
        ),
        Number(
            "headrace_retention_spools_lost",
            "Spools that were found missing or older than `_retention`, since the start.",
            lambda: retention.spools_lost,
        ),
        Number(
            "headrace_inventories",
            "Pictures of all partitions in `_retention`, since the start.",
            lambda: inventory.taken,
        ),
        Number(
            "headrace_inventory_failures",
            "Pictures that could not be published and were taken again.",
            lambda: inventory.failures,
        ),
    )


def of_deletions(deletion: Deletion) -> tuple[Number | NumbersByCode, ...]:
    """Topics on their way out."""
    return (
        Number(
            "headrace_topics_closing", "Topics being deleted.", deletion.closing_count, rises=False
        ),
        NumbersByCode(
            "headrace_topic_delete_failures",
            "Attempts to delete a topic that did not end, by what was missing.",
            lambda: deletion.failures_by_reason,
            label="reason",
        ),
    )


def of_holds(holding: Holding) -> tuple[Number | NumbersByCode, ...]:
    """Holds on their way into the partitions' logs."""
    return (
        Number(
            "headrace_holds_pending",
            "Topics whose partitions do not all know their holds yet.",
            holding.pending_count,
            rises=False,
        ),
        NumbersByCode(
            "headrace_hold_failures",
            "Attempts to hold or release a topic that did not end, by what was missing.",
            lambda: holding.failures_by_reason,
            label="reason",
        ),
    )
