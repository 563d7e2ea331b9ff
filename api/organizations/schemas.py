"""What of an organization crosses HTTP."""

from dataclasses import dataclass

from api.db.tables.organizations import Organization
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


class OrganizationCreate(CreateCommand):
    """A new tenant; a project and a stream `default` come with it."""

    name: Name
    spec: PlainSpec = PlainSpec()


class OrganizationBody(ResourceBody):
    """A tenant."""

    spec: PlainSpec = PlainSpec()
    status: PlainStatus = PlainStatus()

    @classmethod
    def of(cls, row: Organization) -> "OrganizationBody":
        """The body of a row."""
        return cls.model_validate(shared_members(row))


@dataclass(frozen=True, slots=True)
class OrganizationFilter(Filter):
    """Which organizations a list holds."""

    name: NameFilter = ""
