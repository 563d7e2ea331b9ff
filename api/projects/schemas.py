"""What of a project crosses HTTP."""

from api.projects.models import Project
from api.resource import CreateCommand, Name, PlainSpec, PlainStatus, ResourceBody, shared_members


class ProjectCreate(CreateCommand):
    """A new part of the caller's organization; a stream `default` comes with it."""

    name: Name
    spec: PlainSpec = PlainSpec()


class ProjectBody(ResourceBody):
    """A part of an organization."""

    spec: PlainSpec = PlainSpec()
    status: PlainStatus = PlainStatus()

    @classmethod
    def of(cls, row: Project) -> "ProjectBody":
        """The body of a row."""
        return cls.model_validate(shared_members(row))
