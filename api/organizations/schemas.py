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
    """A new organization. A project and a stream named `default` are created with it."""

    name: Name
    spec: PlainSpec = PlainSpec()


class OrganizationBody(ResourceBody):
    """An organization: the unit of tenancy and billing."""

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
