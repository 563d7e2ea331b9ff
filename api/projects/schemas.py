"""What of a project crosses HTTP."""

from dataclasses import dataclass

from api.db.tables.projects import Project
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
from api.http.routing import NameFilter
from api.reconcile.status import plain_status


class ProjectCreate(CreateCommand):
    """A new project of the organization. A stream named `default` is created with it."""

    name: Name
    spec: PlainSpec = PlainSpec()


class ProjectBody(DeletableBody):
    """A project of an organization."""

    spec: PlainSpec = PlainSpec()
    status: PlainStatus = PlainStatus()

    @classmethod
    def of(cls, row: Project, status: ResourceStatus | None = None) -> "ProjectBody":
        """The body of a row, and what was found: there is nothing to find until it shall go."""
        return cls.model_validate(
            {**shared_members(row), **deletion_members(row), **plain_status(status)}
        )


@dataclass(frozen=True, slots=True)
class ProjectFilter(Filter):
    """Which projects a list holds."""

    name: NameFilter = ""
