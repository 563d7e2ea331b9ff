"""One transaction a request: the key, the change, the audit row, the outbox row, the kept answer.

A retry after a lost answer finds the key and gets the same answer. A crash rolls all of it back
together, so that no key is ever left "in progress". Answers are kept for 24 hours: successes, and
refusals that follow from committed state. A secret is never kept; its replay says whose it was.
"""

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Final, Protocol, TypeAlias

from fastapi import Depends, Header, Query, Request
from fastapi.responses import JSONResponse
from pydantic import WithJsonSchema
from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from api.db.database import Database
from api.db.tables.idempotency_keys import IdempotencyKey
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
from api.http.reply import Reply

KEPT: Final = timedelta(hours=24)
KEY_PATTERN: Final = re.compile(r'^("?)([A-Za-z0-9_-]{16,128})\1$')
KEY_SCHEMA: Final = '^([A-Za-z0-9_-]{16,128}|"[A-Za-z0-9_-]{16,128}")$'


class Principal(Protocol):
    """Whose the key of a request is."""

    @property
    def org_id(self) -> str:
        """The organization."""

    @property
    def principal_id(self) -> str:
        """The key, the run or the session that asks."""


# Makes a change at a moment, in the session of its transaction.
Action: TypeAlias = Callable[[Session, datetime], Reply]


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
        Header(description="Unique for each intended change: 16 to 128 of A-Z a-z 0-9 _ -."),
        WithJsonSchema({"type": "string", "pattern": KEY_SCHEMA}),
    ] = None,
    dry_run: Annotated[
        bool, Query(description="Validate and return the result without applying it.")
    ] = False,
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


def run_once(facts: Facts, principal: Principal, action: Action) -> JSONResponse:
    """Runs a change in its transaction and answers it, or answers as the first request was."""
    if facts.dry_run:
        return _dry(facts, action)
    with facts.database.write() as session:
        now = facts.database.now(session)
        if facts.key is None:
            return _response(action(session, now))
        scope = _scope(facts, principal)
        _claim(session, facts.database, scope)
        # The next request removes expired rows: the table holds a day of keys.
        expired = select(IdempotencyKey.scope).where(IdempotencyKey.expires_at <= now)
        expired = expired.with_for_update(skip_locked=True)
        session.execute(delete(IdempotencyKey).where(IdempotencyKey.scope.in_(expired)))
        kept = session.get(IdempotencyKey, scope)
        if kept is not None:
            return _replay(kept, facts)
        try:
            with session.begin_nested():
                reply = action(session, now)
        except DomainError as error:
            if status_of(error) not in STATUSES_KEPT_FOR_REPLAY:
                raise
            reply = Reply(status_of(error), problem(error, facts.request_id))
        session.add(
            IdempotencyKey(
                scope=scope,
                org_id=principal.org_id,
                fingerprint=facts.fingerprint,
                status=reply.status,
                headers=reply.headers,
                body=None if reply.secret_of else reply.body,
                secret_of=reply.secret_of,
                expires_at=now + KEPT,
            )
        )
    return _response(reply)


def _dry(facts: Facts, action: Action) -> JSONResponse:
    """The same checks and the same body, and nothing is kept: what would be made has no id."""
    with facts.database.trial() as session:
        reply = action(session, facts.database.now(session))
    body = {name: value for name, value in reply.body.items() if name != "secret"}
    if str(body.get("id")) not in facts.path:
        body.pop("id", None)
    # A node is asked, if at all, when no lock is held any more.
    plan = reply.plan() if callable(reply.plan) else reply.plan
    shown = {} if plan is None else {"plan": plan}
    return JSONResponse({**body, **shown, "dry_run": True}, status_code=200)


def _scope(facts: Facts, principal: Principal) -> bytes:
    parts = [principal.org_id, principal.principal_id, facts.method, facts.path, facts.key]
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
