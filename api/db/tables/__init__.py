"""Every table of the control plane, imported so that the metadata knows them all."""

from api.db.database import Base, Meta
from api.db.tables.api_keys import ApiKey
from api.db.tables.audit import AuditEvent, OutboxEvent
from api.db.tables.clusters import Cluster
from api.db.tables.holds import LegalHold
from api.db.tables.idempotency_keys import IdempotencyKey
from api.db.tables.invoices import Invoice, InvoiceLine
from api.db.tables.nodes import Node
from api.db.tables.operations import Operation
from api.db.tables.organizations import Organization
from api.db.tables.projects import Project
from api.db.tables.reports import CurrentRun, ReportRun
from api.db.tables.retention import RetentionRow, RetentionTopic
from api.db.tables.streams import Stream
from api.db.tables.topics import Topic, TopicPurge, TopicSpan
from api.db.tables.usage import Price, PriceBook, UsageRow
from api.db.tables.work import ResourceStatus, Work

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
