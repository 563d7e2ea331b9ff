"""One transaction a request: the key, the change, the audit row, the outbox row, the kept answer.

A retry after a lost answer finds the key and gets the same answer. A crash rolls all of it back
together, so that no key is ever left "in progress". Answers are kept for 24 hours: successes, and
refusals that follow from committed state. A secret is never kept; its replay says whose it was.
"""

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Annotated, Final

from fastapi import Depends, Header, Query, Request
from fastapi.responses import JSONResponse
from pydantic import JsonValue as Json
from pydantic import WithJsonSchema
from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from api.auth.audit_chain import Actor
from api.auth.permissions import Caller
from api.db.database import Database
from api.db.tables.audit import IdempotencyKey
from api.deletion.mark import Body, Changed, Plan
from api.http.errors import (
    PROBLEM_MEDIA_TYPE,
    STATUSES_KEPT_FOR_REPLAY,
    DomainError,
    IdempotencyKeyInProgressError,
    IdempotencyKeyReusedError,
    InvalidRequestError,
    SecretAlreadyIssuedError,
    Violation,
    problem,
    status_of,
)
from api.http.resource import ResourceBody, body_json

KEPT: Final = timedelta(hours=24)
KEY_PATTERN: Final = re.compile(r'^("?)([A-Za-z0-9_-]{16,128})\1$')
KEY_SCHEMA: Final = '^([A-Za-z0-9_-]{16,128}|"[A-Za-z0-9_-]{16,128}")$'


@dataclass(frozen=True, slots=True)
class Reply:
    """What a change answers. ``secret_of`` names the object whose secret the body holds; ``plan``
    is shown by a dry run only."""

    status: int
    body: dict[str, Json]
    headers: dict[str, str] = field(default_factory=dict)
    secret_of: str | None = None
    plan: Plan | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """What of the HTTP request the transaction needs."""

    database: Database
    request_id: str
    method: str
    path: str
    key: str | None
    fingerprint: bytes
    dry_run: bool


async def request_facts(
    request: Request,
    idempotency_key: Annotated[
        str | None,
        Header(description="16 to 128 of A-Z a-z 0-9 _ -; one per intended change."),
        WithJsonSchema({"type": "string", "pattern": KEY_SCHEMA}),
    ] = None,
    dry_run: Annotated[bool, Query(description="Check and answer, and change nothing.")] = False,
) -> Facts:
    """Reads the facts; the body is read already and is only hashed here."""
    key = None
    if idempotency_key is not None:
        match = KEY_PATTERN.match(idempotency_key)
        if match is None:
            raise InvalidRequestError(
                "The Idempotency-Key is not 16 to 128 of A-Z a-z 0-9 _ -.",
                violations=[Violation("Idempotency-Key", "BAD_FORMAT", "e.g. a UUID")],
            )
        key = match.group(2)
    canonical = json.dumps(await request.json(), sort_keys=True)
    query = sorted(request.query_params.multi_items())
    content_type = request.headers.get("content-type", "")
    fingerprint = hashlib.sha256(json.dumps([canonical, query, content_type]).encode()).digest()
    return Facts(
        database=request.app.state.database,
        request_id=request.state.request_id,
        method=request.method,
        path=request.scope["path"],
        key=key,
        fingerprint=fingerprint,
        dry_run=dry_run,
    )


RequestFacts = Annotated[Facts, Depends(request_facts)]


def change(facts: Facts, caller: Caller, action: Callable[[Session, Actor], Reply]) -> JSONResponse:
    """Runs a change in its transaction and answers it, or answers as the first request was."""
    if facts.dry_run:
        return _dry(facts, caller, action)
    with facts.database.write() as session:
        actor = Actor(caller, facts.request_id, facts.database.now(session))
        if facts.key is None:
            return _response(action(session, actor))
        scope = _scope(facts, caller)
        _claim(session, facts.database, scope)
        # What has expired is taken out by whoever comes next: the table holds a day of keys.
        expired = select(IdempotencyKey.scope).where(IdempotencyKey.expires_at <= actor.now)
        expired = expired.with_for_update(skip_locked=True)
        session.execute(delete(IdempotencyKey).where(IdempotencyKey.scope.in_(expired)))
        kept = session.get(IdempotencyKey, scope)
        if kept is not None:
            return _replay(kept, facts)
        try:
            with session.begin_nested():
                reply = action(session, actor)
        except DomainError as error:
            if status_of(error) not in STATUSES_KEPT_FOR_REPLAY:
                raise
            reply = Reply(status_of(error), problem(error, facts.request_id))
        session.add(
            IdempotencyKey(
                scope=scope,
                org_id=caller.org_id,
                fingerprint=facts.fingerprint,
                status=reply.status,
                headers=reply.headers,
                body=None if reply.secret_of else reply.body,
                secret_of=reply.secret_of,
                expires_at=actor.now + KEPT,
            )
        )
    return _response(reply)


def _dry(facts: Facts, caller: Caller, action: Callable[[Session, Actor], Reply]) -> JSONResponse:
    """The same checks and the same body, and nothing is kept: what would be made has no id."""
    with facts.database.trial() as session:
        actor = Actor(caller, facts.request_id, facts.database.now(session))
        reply = action(session, actor)
    body = {name: value for name, value in reply.body.items() if name != "secret"}
    if str(body.get("id")) not in facts.path:
        body.pop("id", None)
    # A node is asked, if at all, when no lock is held any more.
    plan = reply.plan() if callable(reply.plan) else reply.plan
    shown = {} if plan is None else {"plan": plan}
    return JSONResponse({**body, **shown, "dry_run": True}, status_code=200)


def _scope(facts: Facts, caller: Caller) -> bytes:
    parts = [caller.org_id, caller.principal_id, facts.method, facts.path, facts.key]
    return hashlib.sha256(json.dumps(parts).encode()).digest()


def _claim(session: Session, database: Database, scope: bytes) -> None:
    """On PostgreSQL an insert would wait for the other transaction; SQLite has one writer
    anyway."""
    if database.is_sqlite:
        return
    number = int.from_bytes(scope[:8], "big", signed=True)
    if not session.scalar(select(func.pg_try_advisory_xact_lock(number))):
        raise IdempotencyKeyInProgressError(
            "Another request with this key is running.", retry_after_seconds=1
        )


def _replay(kept: IdempotencyKey, facts: Facts) -> JSONResponse:
    if kept.fingerprint != facts.fingerprint:
        raise IdempotencyKeyReusedError(
            "The key was used for a request with another body, query or content type.",
            hint="Use a fresh key for every intended change, and the same key only to retry it.",
        )
    if kept.secret_of is not None:
        raise SecretAlreadyIssuedError(
            f"The first answer held the secret of {kept.secret_of}; it is not kept.",
            hint=f"If the answer was lost: revoke {kept.secret_of}, then create another key.",
            existing_id=kept.secret_of,
        )
    body = kept.body if isinstance(kept.body, dict) else {}
    response = _response(Reply(kept.status, body, kept.headers))
    response.headers["Idempotency-Replayed"] = "true"
    return response


def _response(reply: Reply) -> JSONResponse:
    media_type = PROBLEM_MEDIA_TYPE if reply.status >= 400 else "application/json"
    return JSONResponse(
        reply.body, status_code=reply.status, headers=reply.headers, media_type=media_type
    )


def changed(result: Changed[Body], path: str) -> Reply:
    """The reply to a change: 202 with its operation, or 200 if there is nothing to do."""
    reply = created(
        result.body,
        path,
        status=202 if result.operation_id else 200,
        operation_id=result.operation_id,
    )
    return replace(reply, plan=result.plan)


def created(
    body: ResourceBody, path: str, *, status: int = 201, operation_id: str | None = None
) -> Reply:
    """The reply to a create or a change: body, Location, ETag, and the operation if there is
    one."""
    headers = {"Location": f"{path}/{body.id}", "ETag": f'"{body.etag}"'}
    if operation_id is not None:
        headers["Operation-Id"] = operation_id
    return Reply(status, body_json(body), headers)
