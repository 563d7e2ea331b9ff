"""The rules of API keys; the only writer of their table. Keys are pushed to the nodes by
workers."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from pydantic import JsonValue as Json
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from api.api_keys.schemas import ApiKeyBody, ApiKeyCreate, ApiKeyFilter, expiry
from api.auth.audit_chain import Actor, Change, record_change
from api.auth.change import first_columns
from api.auth.guard import Owner
from api.auth.permissions import Caller
from api.auth.scope import of_organization, visible_to
from api.auth.tokens import Token, new_token
from api.db.identifiers import new_id
from api.db.locks import locked
from api.db.tables.api_keys import ApiKey
from api.db.tables.organizations import Organization
from api.db.tables.projects import Project
from api.deletion.mark import refuse_deleting
from api.http.errors import ConflictError, ForbiddenError, NameTakenError, NotFoundError
from api.http.pagination import Page, Paging, page_of
from api.http.resource import body_json, revision_wanted
from api.reconcile.operations import Target, start_operation
from api.reconcile.queue import enqueue
from api.reconcile.status import create_status, statuses

CONDITIONS: Final = ("Active", "Ready", "Reachable", "Stalled")
KEY_LIFE: Final = timedelta(days=90)
# No name that a user can give has a dot.
SESSION_PREFIX: Final = "console."


@dataclass(frozen=True, slots=True)
class IssuedKey:
    """A key after a change. ``token`` is there only when it was just made."""

    body: ApiKeyBody
    operation_id: str | None
    token: Token | None = None


def create_key(
    session: Session, actor: Actor, command: ApiKeyCreate, *, operator: bool = False
) -> IssuedKey:
    """A key and its token. The token is in the answer and nowhere else."""
    org_id, project_id = _scope(session, actor, command)
    same = of_organization(select(ApiKey), ApiKey, org_id).where(
        ApiKey.name == command.name, ApiKey.revoked_at.is_(None)
    )
    taken = session.scalars(same).first()
    if taken is not None:
        raise NameTakenError(f"There is a key {command.name} already.", existing_id=taken.id)
    token = new_token("user")
    row = ApiKey(
        id=new_id("key"),
        org_id=org_id,
        project_id=project_id,
        name=command.name,
        role=command.spec.role,
        operator=operator,
        public_id=token.public_id,
        secret_sha256=token.secret_sha256,
        expires_at=expiry(command.spec, actor.now, actor.now + KEY_LIFE),
        revoked_at=None,
        **first_columns(actor, command),
    )
    session.add(row)
    session.flush()
    create_status(session, object_id=row.id, org_id=row.org_id, types=CONDITIONS, now=actor.now)
    return _issued(session, actor, row, "keys.create", before=None, token=token)


def revoke_key(session: Session, actor: Actor, *, key_id: str, if_match: str | None) -> IssuedKey:
    """The key stops working here at once, and on the nodes as soon as they are updated."""
    row = session.get_one(ApiKey, key_id)
    if row.role == "owner" and row.project_id is None:
        # Two owners that revoke each other must not both succeed.
        locked(session, Organization, row.org_id)
    row = locked(session, ApiKey, key_id)
    revision_wanted(if_match, row.revision)
    before = key_bodies(session, [row])[0]
    if row.revoked_at is not None:
        return IssuedKey(before, None)
    lasting = not row.name.startswith(SESSION_PREFIX)
    if (
        lasting
        and row.role == "owner"
        and row.project_id is None
        and _owners(session, row, actor.now) <= 1
    ):
        raise ConflictError(
            "It is the last owner key of the organization.",
            code="LAST_OWNER",
            hint="Create another owner key first.",
        )
    row.revoked_at = actor.now
    row.updated_at = actor.now
    row.generation += 1
    row.revision += 1
    session.flush()
    return _issued(session, actor, row, "keys.revoke", before=body_json(before), token=None)


def revoke_permission(session: Session, key_id: str) -> str:
    """What it takes to revoke a key: more for an operator's. No key ever becomes an operator's."""
    return "operators:revoke" if session.get_one(ApiKey, key_id).operator else "keys:revoke"


def key_bodies(session: Session, rows: Sequence[ApiKey]) -> list[ApiKeyBody]:
    """The bodies of rows, in their order."""
    found = statuses(session, [row.id for row in rows])
    return [ApiKeyBody.of(row, found.get(row.id)) for row in rows]


def key_page(
    session: Session, caller: Caller, which: ApiKeyFilter, page: Paging
) -> Page[ApiKeyBody]:
    """The keys that a caller sees, oldest first."""
    query = visible_to(select(ApiKey), ApiKey, caller)
    if not which.sessions:
        query = query.where(~ApiKey.name.startswith(SESSION_PREFIX, autoescape=True))
    if which.name:
        query = query.where(ApiKey.name == which.name)
    if which.project_id:
        query = query.where(ApiKey.project_id == which.project_id)
    request = page.of(session, caller.org_id, "api-keys", which.members())
    return page_of(session, query, ApiKey.id, request, key_bodies)


def read_key(session: Session, key_id: str) -> ApiKeyBody:
    """One key."""
    return key_bodies(session, [session.get_one(ApiKey, key_id)])[0]


def key_owner(session: Session, object_id: str) -> Owner | None:
    """Whose a key is. An organization-wide key is out of sight of a key confined to a project."""
    row = session.get(ApiKey, object_id)
    return Owner(row.org_id, row.project_id or "") if row else None


def _issued(
    session: Session,
    actor: Actor,
    row: ApiKey,
    action: str,
    *,
    before: dict[str, Json] | None,
    token: Token | None,
) -> IssuedKey:
    kind = "create_key" if before is None else "revoke_key"
    target = Target("key", row.id, row.org_id, row.project_id, row.generation)
    enqueue(
        session,
        kind="key",
        object_id=row.id,
        org_id=row.org_id,
        generation=row.generation,
        now=actor.now,
    )
    operation = start_operation(session, actor, kind, target)
    body = key_bodies(session, [row])[0]
    record_change(
        session, actor, Change(row.org_id, action, "api_key", row.id, before, body_json(body))
    )
    return IssuedKey(body, operation.id, token)


def _scope(session: Session, actor: Actor, command: ApiKeyCreate) -> tuple[str, str | None]:
    """The organization and project of a new key; no caller grants more than it has."""
    caller = actor.caller
    org_id = command.organization_id or caller.org_id
    organization = session.get(Organization, org_id)
    if organization is None or (org_id != caller.org_id and not caller.operator):
        raise NotFoundError(
            f"The organization {org_id} does not exist, or this key has no access to it."
        )
    if organization.system and org_id != caller.org_id:
        raise ForbiddenError("The system's organization has no keys.")
    project_id = command.project_id or caller.project_id
    if project_id is not None:
        project = session.get(Project, project_id)
        confined = caller.project_id not in (None, project_id)
        gone = project is None or project.purged_at is not None
        if project is None or gone or project.org_id != org_id or confined:
            raise NotFoundError(
                f"The project {project_id} does not exist, or this key has no access to it."
            )
        refuse_deleting(locked(session, Project, project.id, shared=True), "project")
    return org_id, project_id


def _lasting_owner(row: ApiKey) -> bool:
    """Whether it is an owner's key of the organization, and no session's."""
    session = row.name.startswith(SESSION_PREFIX)
    return row.role == "owner" and row.project_id is None and not session


def _owners(session: Session, row: ApiKey, now: datetime) -> int:
    query = of_organization(select(func.count()).select_from(ApiKey), ApiKey, row.org_id).where(
        ApiKey.role == "owner",
        ApiKey.project_id.is_(None),
        ApiKey.revoked_at.is_(None),
        # A session expires: it is no lasting access for an owner.
        ~ApiKey.name.startswith(SESSION_PREFIX),
        (ApiKey.expires_at.is_(None)) | (ApiKey.expires_at > now),
    )
    return session.scalar(query) or 0
