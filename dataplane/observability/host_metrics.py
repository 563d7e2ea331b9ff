"""The metrics of the host, by the names that operators see (docs/operating/runbook.md).

Owns names and help texts only; each value is read where it is kept, at the time of the request.
"""

from dataplane.coordinator.handover import Handover
from dataplane.engine.ring import Ring
from dataplane.engine.rpc import Bridge
from dataplane.evidence.counters import Counters
from dataplane.evidence.inventory import Inventory
from dataplane.evidence.publisher import EvidencePublisher
from dataplane.metadata.replica import MetadataReplica
from dataplane.observability.telemetry import Number, NumbersByCode
from dataplane.services.groups import GroupService
from dataplane.workflows.delete_topic import DeleteTopicWorkflow
from dataplane.workflows.legal_holds import LegalHoldWorkflow


def of_calls(ring: Ring, bridge: Bridge) -> tuple[Number | NumbersByCode, ...]:
    """The ring and the calls that crossed it."""
    return (
        Number(
            "headrace_host_frames_received",
            "Frames received from the engine.",
            lambda: ring.frames_received,
        ),
        Number("headrace_host_frames_sent", "Frames sent to the engine.", lambda: ring.frames_sent),
        Number(
            "headrace_host_replies_late",
            "Replies of shards that arrived after their deadline.",
            lambda: ring.replies_late,
        ),
        Number(
            "headrace_host_call_frames_late",
            "Frames that arrived after their call had ended.",
            lambda: bridge.frames_late,
        ),
        Number(
            "headrace_host_calls_open",
            "Calls that the host is handling now.",
            bridge.calls_count,
            rises=False,
        ),
        NumbersByCode(
            "headrace_host_calls",
            "Calls that the host has handled, by status code.",
            lambda: bridge.finished_by_code,
        ),
    )


def of_groups(
    replica: MetadataReplica, groups: GroupService, handover: Handover
) -> tuple[Number, ...]:
    """The metadata and the groups in it."""
    return (
        Number(
            "headrace_metadata_ops_applied",
            "Metadata operations applied since the start.",
            lambda: replica.ops_applied,
        ),
        Number(
            "headrace_metadata_snapshots_too_large",
            "Metadata snapshots not taken because they exceeded the size limit.",
            lambda: replica.snapshots_refused,
        ),
        Number(
            "headrace_metadata_op",
            "Number of the last metadata operation applied.",
            replica.op,
            rises=False,
        ),
        Number(
            "headrace_group_sessions",
            "Members of consumer groups connected to this node.",
            groups.sessions_count,
            rises=False,
        ),
        Number(
            "headrace_group_pictures",
            "Assignments sent to members of consumer groups.",
            groups.assignments_count,
        ),
        Number(
            "headrace_group_moves_open",
            "Partitions that are moving from one group member to another.",
            groups.moves_count,
            rises=False,
        ),
        Number(
            "headrace_group_moves",
            "Partitions moved from one group member to another.",
            lambda: handover.completed,
        ),
        Number(
            "headrace_group_releases_timed_out",
            "Group members that did not release a partition before their timeout.",
            lambda: handover.timed_out,
        ),
    )


def of_usage(usage: EvidencePublisher, counters: Counters) -> tuple[Number, ...]:
    """Windows and counters that are published to `_usage`."""
    return (
        Number(
            "headrace_usage_counters_spooled",
            "Usage counters written to the spool since the start.",
            lambda: counters.spooled,
        ),
        Number(
            "headrace_usage_counters_merged",
            "Usage counters merged because the spool could not accept them.",
            lambda: counters.merged,
        ),
        Number(
            "headrace_usage_counters_hours_merged",
            "Usage counters merged across hours because too many were waiting.",
            lambda: counters.hours_merged,
        ),
        Number(
            "headrace_usage_published",
            "Metering windows published to `_usage`, including earlier runs of the node.",
            usage.published_count,
        ),
        Number(
            "headrace_usage_pending",
            "Closed metering windows not yet published to `_usage`.",
            usage.pending_count,
            rises=False,
        ),
        Number(
            "headrace_usage_retries",
            "Repeated attempts to spool or publish usage.",
            lambda: usage.retries,
        ),
        Number(
            "headrace_usage_spools_lost",
            "Usage spools found missing or outdated at a start.",
            lambda: usage.spools_lost,
        ),
    )


def of_retention(retention: EvidencePublisher, inventory: Inventory) -> tuple[Number, ...]:
    """Deletion events and inventories that are published to `_retention`."""
    return (
        Number(
            "headrace_retention_published",
            "Deletion events published to `_retention`, including earlier runs of the node.",
            retention.published_count,
        ),
        Number(
            "headrace_retention_pending",
            "Deletion events not yet published to `_retention`.",
            retention.pending_count,
            rises=False,
        ),
        Number(
            "headrace_retention_retries",
            "Repeated attempts to spool or publish deletion events.",
            lambda: retention.retries,
        ),
        Number(
            "headrace_retention_spools_lost",
            "Retention spools found missing or outdated at a start.",
            lambda: retention.spools_lost,
        ),
        Number(
            "headrace_inventories",
            "Inventories of all partitions published to `_retention` since the start.",
            lambda: inventory.taken,
        ),
        Number(
            "headrace_inventory_failures",
            "Inventories that could not be published and were repeated.",
            lambda: inventory.failures,
        ),
    )


def of_deletions(deletion: DeleteTopicWorkflow) -> tuple[Number | NumbersByCode, ...]:
    """Topics being deleted."""
    return (
        Number(
            "headrace_topics_closing", "Topics being deleted.", deletion.closing_count, rises=False
        ),
        NumbersByCode(
            "headrace_topic_delete_failures",
            "Failed attempts to complete the deletion of a topic, by reason.",
            lambda: deletion.failures_by_reason,
            label="reason",
        ),
    )


def of_holds(workflow: LegalHoldWorkflow) -> tuple[Number | NumbersByCode, ...]:
    """Legal holds being applied to the logs of partitions."""
    return (
        Number(
            "headrace_holds_pending",
            "Topics with legal holds that not all partitions have applied.",
            workflow.pending_count,
            rises=False,
        ),
        NumbersByCode(
            "headrace_hold_failures",
            "Failed attempts to apply or release a legal hold, by reason.",
            lambda: workflow.failures_by_reason,
            label="reason",
        ),
    )
