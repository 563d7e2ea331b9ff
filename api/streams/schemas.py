"""What of a stream crosses HTTP."""

from pydantic import Field

from api.resource import CreateCommand, Name, PlainSpec, PlainStatus, ResourceBody, shared_members
from api.streams.models import Stream


class StreamCreate(CreateCommand):
    """A new namespace of topics. Without ids: the key's project, or `default`; the only cluster."""

    name: Name
    project_id: str | None = Field(default=None, max_length=40)
    cluster_id: str | None = Field(default=None, max_length=40)
    spec: PlainSpec = PlainSpec()


class StreamBody(ResourceBody):
    """A namespace of topics in a project, on one cluster."""

    project_id: str
    cluster_id: str
    spec: PlainSpec = PlainSpec()
    status: PlainStatus = PlainStatus()

    @classmethod
    def of(cls, row: Stream) -> "StreamBody":
        """The body of a row."""
        return cls.model_validate(
            {
                **shared_members(row),
                "project_id": row.project_id,
                "cluster_id": row.cluster_id,
            }
        )
