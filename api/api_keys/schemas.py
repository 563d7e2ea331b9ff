"""What of an API key crosses HTTP. The secret does once, in the answer to its creation."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal

from fastapi import Query
from pydantic import BaseModel, Field

from api.auth.permissions import Role
from api.db.tables.api_keys import ApiKey
from api.db.tables.work import ResourceStatus
from api.http.pagination import Filter
from api.http.resource import (
    Command,
    ConditionBody,
    CreateCommand,
    Moment,
    Name,
    ResourceBody,
    Timestamp,
    shared_members,
)
from api.http.routing import IdFilter, NameFilter
from api.reconcile.status import condition_bodies

SessionsToo = Annotated[bool, Query(description="Include the keys of console sessions.")]


class ApiKeySpec(Command):
    """The role of the key and its expiry: 90 days from now unless ``expires_at`` is set."""

    role: Role
    expires_at: Moment | Literal["never"] | None = None


class ApiKeyCreate(CreateCommand):
    """A new API key. Without ``project_id``, it is valid for the whole organization. Only operators
    can set another organization.
    """

    name: Name
    project_id: str | None = Field(default=None, max_length=40)
    organization_id: str | None = Field(default=None, max_length=40)
    spec: ApiKeySpec


class ApiKeySpecBody(BaseModel):
    """The role and the expiry of the key."""

    role: Role
    expires_at: Timestamp | None = None


class ApiKeyStatus(BaseModel):
    """Active is True once all clusters accept the key, and False once all of them refuse it."""

    conditions: list[ConditionBody]
    observed_generation: int


class ApiKeyBody(ResourceBody):
    """An API key, without its secret."""

    project_id: str | None = None
    public_id: str
    operator: bool
    revoked_at: Timestamp | None = None
    spec: ApiKeySpecBody
    status: ApiKeyStatus

    @classmethod
    def of(cls, row: ApiKey, status: ResourceStatus | None) -> "ApiKeyBody":
        """The body of a row and what was found."""
        return cls.model_validate(api_key_members(row, status))


class ApiKeyCreatedBody(ApiKeyBody):
    """The response to the creation of a key, and the only one that contains ``secret``: the
    complete token.
    """

    secret: str | None = None


def api_key_members(row: ApiKey, status: ResourceStatus | None) -> dict[str, object]:
    """The members of :class:`ApiKeyBody`."""
    return {
        **shared_members(row),
        "project_id": row.project_id,
        "public_id": row.public_id,
        "operator": row.operator,
        "revoked_at": row.revoked_at,
        "spec": {"role": row.role, "expires_at": row.expires_at},
        "status": {
            "conditions": condition_bodies(status),
            "observed_generation": status.observed_generation if status else 0,
        },
    }


def expiry(spec: ApiKeySpec, now: datetime, default_until: datetime) -> datetime | None:
    """When the key ends; None is never."""
    if spec.expires_at is None:
        return default_until
    return None if spec.expires_at == "never" else max(spec.expires_at, now)


@dataclass(frozen=True, slots=True)
class ApiKeyFilter(Filter):
    """Which keys a list holds."""

    name: NameFilter = ""
    project_id: IdFilter = ""
    sessions: SessionsToo = False
