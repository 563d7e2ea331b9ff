"""Every table of the control plane, imported so that the metadata knows them all."""

from api.access.models import ApiKey
from api.audit.models import AuditEvent, IdempotencyKey, OutboxEvent
from api.clusters.models import Cluster
from api.database import Base, Meta
from api.holds.models import LegalHold
from api.invoices.models import Invoice, InvoiceLine
from api.nodes.models import Node
from api.operations.models import Operation
from api.organizations.models import Organization
from api.projects.models import Project
from api.reconcile.models import ResourceStatus, Work
from api.reports.models import CurrentRun, ReportRun
from api.retention.models import RetentionRow, RetentionTopic
from api.streams.models import Stream
from api.topics.models import Topic, TopicPurge, TopicSpan
from api.usage.models import Price, PriceBook, UsageRow

__all__ = [
    "ApiKey",
    "AuditEvent",
    "Base",
    "Cluster",
    "CurrentRun",
    "IdempotencyKey",
    "Invoice",
    "InvoiceLine",
    "LegalHold",
    "Meta",
    "Node",
    "Operation",
    "Organization",
    "OutboxEvent",
    "Price",
    "PriceBook",
    "Project",
    "ReportRun",
    "ResourceStatus",
    "RetentionRow",
    "RetentionTopic",
    "Stream",
    "Topic",
    "TopicPurge",
    "TopicSpan",
    "UsageRow",
    "Work",
]
