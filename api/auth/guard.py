"""The gate of every route: who is asking, may they, and is the object theirs.

A :class:`Guard` stands on every route; it names the permission and, for a path with an id, how to
find the owner of the object. Absent and foreign look the same (404); inside the organization a
missing permission is 403 and is audited. Authorization comes before validation, so that an answer
never tells a stranger what exists.
"""

import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass
from typing import Final, TypeAlias

from fastapi import Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from sqlalchemy import select
from sqlalchemy.orm import Session

from api.auth.audit_chain import Actor, Change, record_refusal
from api.auth.cookies import credential
from api.auth.permissions import OPERATOR, OWNER, Caller
from api.auth.rate import Limits
from api.auth.tokens import parse_token
from api.db.database import Database
from api.db.tables.api_keys import ApiKey
from api.db.tables.reports import ReportRun
from api.http.errors import (
    ForbiddenError,
    InvalidRequestError,
    NotFoundError,
    UnauthenticatedError,
    Violation,
)


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose an object is. ``shared`` objects may be read by every organization, ``operated`` ones
    by the operator too."""

    org_id: str
    project_id: str | None = None
    shared: bool = False
    run_id: str | None = None
    operated: bool = False


# A job that lost the answer to its result asks again after the run has succeeded.
RUN_STATES: Final = ("RUNNING", "SUCCEEDED")

Loader: TypeAlias = Callable[[Session, str], Owner | None]


class Guard:
    """A dependency that answers the :class:`Caller` or refuses.

    :param permission: what the caller's role must hold.
    :param loader: finds the owner of the object that the path names; None for collections.
    :param parameter: the path parameter with the object's id.
    :param cost: how many ordinary requests it counts for.
    """

    def __init__(
        self,
        permission: str,
        loader: Loader | None = None,
        parameter: str = "object_id",
        *,
        cost: int = 1,
    ) -> None:
        self.permission = permission
        self.loader = loader
        self.parameter = parameter
        self.cost = cost

    def __call__(self, request: Request) -> Caller:
        """Runs once a request, before its body is looked at."""
        database: Database = request.app.state.database
        object_id = str(request.path_params.get(self.parameter, ""))
        with database.read() as session:
            caller = authenticate(session, credential(request), database)
            self._count(request, caller)
            if self.loader is not None:
                owner = self.loader(session, object_id)
                if owner is None or not visible(caller, owner):
                    raise NotFoundError(
                        f"{object_id} does not exist, or this key has no access to it."
                    )
        demand(request, caller, self.permission, object_id)
        _refuse_unknown_parameters(request)
        return caller

    def _count(self, request: Request, caller: Caller) -> None:
        """Counts the request; the middleware shows what is left with every answer."""
        limits: Limits = request.app.state.limits
        request.state.rate_policy = limits.policy.header()
        request.state.rate_left = limits.take(caller.principal_id, self.cost)


def demand(request: Request, caller: Caller, permission: str, object_id: str) -> None:
    """Lets a caller pass who holds a permission; anybody else is refused, and that is audited."""
    if caller.may(permission):
        return
    database: Database = request.app.state.database
    _audit_refusal(database, request, caller, permission, object_id)
    raise ForbiddenError(
        f"This requires the permission {permission}.",
        hint="Only the operator of the service has it. Contact the operator."
        if permission in OPERATOR - OWNER
        else "Ask an owner of the organization for a key with a role that includes it.",
        permission=permission,
    )


def visible(caller: Caller, owner: Owner) -> bool:
    """Whether an object exists for a caller at all."""
    if caller.run_id is not None:
        return caller.run_id == owner.run_id
    if owner.shared or (owner.operated and caller.operator):
        return True
    if caller.org_id != owner.org_id:
        return False
    return caller.project_id is None or owner.project_id in (None, caller.project_id)


def authenticate(session: Session, header: str | None, database: Database) -> Caller:
    """The principal that a bearer token stands for."""
    scheme, _, text = (header or "").partition(" ")
    token = parse_token(text.strip()) if scheme.lower() == "bearer" else None
    if token is None:
        raise UnauthenticatedError(
            "The request has no valid API key.",
            hint="Send `Authorization: Bearer hr_user_...`. `headrace up` writes a key to the "
            "profile.",
        )
    if token.kind == "run":
        run = session.scalars(
            select(ReportRun).where(ReportRun.token_public_id == token.public_id)
        ).first()
        if run is None or run.state not in RUN_STATES or run.token_sha256 is None:
            raise _rejected()
        if not secrets.compare_digest(run.token_sha256, token.secret_sha256):
            raise _rejected()
        return Caller(run.id, run.org_id, role=None, run_id=run.id)
    key = session.scalars(select(ApiKey).where(ApiKey.public_id == token.public_id)).first()
    known = key is not None and secrets.compare_digest(key.secret_sha256, token.secret_sha256)
    if key is None or not known or token.kind != "user" or key.revoked_at is not None:
        raise _rejected()
    if key.expires_at is not None and key.expires_at <= database.now(session):
        raise UnauthenticatedError(
            "The key has expired.", code="KEY_EXPIRED", hint="Create another key."
        )
    return Caller(
        key.id,
        key.org_id,
        role=key.role,  # type: ignore[arg-type]  # the column's CHECK holds the four roles
        project_id=key.project_id,
        operator=key.operator,
    )


def guard_of(route: APIRoute) -> Guard | None:
    """The guard of a route: what the tests walk."""
    for dependant in _dependants(route.dependant):
        if isinstance(dependant.call, Guard):
            return dependant.call
    return None


def _dependants(dependant: Dependant) -> Iterable[Dependant]:
    for child in dependant.dependencies:
        yield child
        yield from _dependants(child)


def _rejected() -> UnauthenticatedError:
    return UnauthenticatedError(
        "The key is unknown, revoked, or not meant for this API.",
        hint="Check HEADRACE_KEY and the profile; create another key if this one was revoked.",
    )


def _refuse_unknown_parameters(request: Request) -> None:
    route = request.scope.get("route")
    if not isinstance(route, APIRoute):
        return
    known = {
        field.alias
        for dependant in [route.dependant, *_dependants(route.dependant)]
        for field in dependant.query_params
    }
    given = Counter(name for name, _ in request.query_params.multi_items())
    _refuse_parameters(sorted(given.keys() - known), "unknown", known)
    # Readers differ about which one of several counts.
    _refuse_parameters(sorted(name for name in given if given[name] > 1), "repeated", known)


def _refuse_parameters(names: Sequence[str], fault: str, known: Set[str]) -> None:
    if names:
        raise InvalidRequestError(
            f"{fault.capitalize()} query parameter: {', '.join(names)}.",
            hint=f"This path takes, once each: {', '.join(sorted(known)) or 'none'}.",
            violations=[
                Violation(f"?{name}", f"{fault.upper()}_PARAMETER", f"{fault} for this path")
                for name in names
            ],
        )


def _audit_refusal(
    database: Database, request: Request, caller: Caller, permission: str, object_id: str
) -> None:
    with database.write() as session:
        actor = Actor(caller, request.state.request_id, database.now(session))
        kind = permission.partition(":")[0]
        record_refusal(
            session, actor, Change(caller.org_id, permission.replace(":", "."), kind, object_id)
        )
