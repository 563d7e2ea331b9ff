"""What of a node crosses HTTP."""

from typing import Annotated

from pydantic import BaseModel, Field

from api.db.tables.nodes import Node
from api.http.resource import (
    Command,
    CreateCommand,
    Int64,
    Name,
    PlainStatus,
    ResourceBody,
    Timestamp,
    shared_members,
)

Address = Annotated[str, Field(pattern=r"^[A-Za-z0-9.\-\[\]:]+:[0-9]{1,5}$", max_length=255)]


class NodeSpec(Command):
    """The address of the node's gRPC port: ``host:port``."""

    address: Address


class NodeCreate(CreateCommand):
    """A new node. ``id`` must match the configuration of the node."""

    id: Annotated[str, Field(pattern=r"^nd_[0-9a-z]{26}$")]
    name: Name
    spec: NodeSpec


class NodeSaid(BaseModel):
    """The response of the node at ``answered_at``, and how long it took. ``incarnation`` differs
    after each start. ``warning`` is a condition that needs attention although the node serves.
    """

    version: str
    shards: int
    incarnation: Int64
    metadata_op: Int64
    started_at: Timestamp
    answered_at: Timestamp
    answer_ms: int
    warning: str


class NodeStatus(PlainStatus):
    """``said`` and the condition Reachable are present if requested (`live=true`)."""

    said: NodeSaid | None = None


class NodeBody(ResourceBody):
    """A process that serves partitions."""

    cluster_id: str
    spec: NodeSpec
    status: NodeStatus

    @classmethod
    def of(cls, row: Node) -> "NodeBody":
        """The body of a row."""
        return cls.model_validate(
            {
                **shared_members(row),
                "cluster_id": row.cluster_id,
                "spec": {"address": row.address},
                "status": NodeStatus(),
            }
        )
