"""What of a node crosses HTTP."""

from typing import Annotated

from pydantic import Field

from api.nodes.models import Node
from api.resource import (
    Command,
    CreateCommand,
    Name,
    PlainStatus,
    ResourceBody,
    shared_members,
)

Address = Annotated[str, Field(pattern=r"^[A-Za-z0-9.\-\[\]:]+:[0-9]{1,5}$", max_length=255)]


class NodeSpec(Command):
    """Where the node's gRPC port is: ``host:port``."""

    address: Address


class NodeCreate(CreateCommand):
    """Registers a node. ``id`` is the one in the node's own configuration."""

    id: Annotated[str, Field(pattern=r"^nd_[0-9a-z]{26}$")]
    name: Name
    spec: NodeSpec


class NodeBody(ResourceBody):
    """A process that serves partitions."""

    cluster_id: str
    spec: NodeSpec
    status: PlainStatus = PlainStatus()

    @classmethod
    def of(cls, row: Node) -> "NodeBody":
        """The body of a row."""
        return cls.model_validate(
            {
                **shared_members(row),
                "cluster_id": row.cluster_id,
                "spec": {"address": row.address},
            }
        )
