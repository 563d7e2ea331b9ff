"""What of a stream crosses HTTP."""

from dataclasses import dataclass

from pydantic import Field

from api.db.tables.streams import Stream
from api.db.tables.work import ResourceStatus
from api.http.pagination import Filter
from api.http.resource import (
    CreateCommand,
    DeletableBody,
    Name,
    PlainSpec,
    PlainStatus,
    deletion_members,
    shared_members,
)
from api.http.routing import IdFilter, NameFilter
from api.reconcile.status import plain_status


class StreamCreate(CreateCommand):
    """A new stream. Defaults: the project of the key or `default`, and the only cluster."""

    name: Name
    project_id: str | None = Field(default=None, max_length=40)
    cluster_id: str | None = Field(default=None, max_length=40)
    spec: PlainSpec = PlainSpec()


class StreamBody(DeletableBody):
    """A namespace of topics in a project, on one cluster."""

    project_id: str
    cluster_id: str
    spec: PlainSpec = PlainSpec()
    status: PlainStatus = PlainStatus()

    @classmethod
    def of(cls, row: Stream, status: ResourceStatus | None = None) -> "StreamBody":
        """The body of a row, and what was found: there is nothing to find until it shall go."""
        return cls.model_validate(
            {
                **shared_members(row),
                **deletion_members(row),
                **plain_status(status),
                "project_id": row.project_id,
                "cluster_id": row.cluster_id,
            }
        )


@dataclass(frozen=True, slots=True)
class StreamFilter(Filter):
    """Which streams a list holds."""

    name: NameFilter = ""
    project_id: IdFilter = ""
    cluster_id: IdFilter = ""
