"""What of an organization crosses HTTP."""

from api.db.tables.organizations import Organization
from api.http.resource import (
    CreateCommand,
    Name,
    PlainSpec,
    PlainStatus,
    ResourceBody,
    shared_members,
)


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
