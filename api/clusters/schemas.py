"""What of a cluster crosses HTTP."""

from dataclasses import dataclass

from api.db.tables.clusters import Cluster
from api.http.pagination import Filter
from api.http.resource import (
    CreateCommand,
    Name,
    PlainSpec,
    PlainStatus,
    ResourceBody,
    shared_members,
)
from api.http.routing import NameFilter


class ClusterCreate(CreateCommand):
    """A new cluster. Next, register its nodes."""

    name: Name
    spec: PlainSpec = PlainSpec()


class ClusterBody(ResourceBody):
    """A set of nodes that serve together. All organizations can read it."""

    spec: PlainSpec = PlainSpec()
    status: PlainStatus = PlainStatus()

    @classmethod
    def of(cls, row: Cluster) -> "ClusterBody":
        """The body of a row."""
        return cls.model_validate(shared_members(row))


@dataclass(frozen=True, slots=True)
class ClusterFilter(Filter):
    """Which clusters a list holds."""

    name: NameFilter = ""
