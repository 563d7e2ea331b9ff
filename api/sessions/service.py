"""Who may enter the console: the administrator by a password, anybody by an API key.

The password is made at the first start and shown once; the database holds
its argon2id hash. Entering by it makes a key that lives as long as the session. This module refuses
to know HTTP.
"""

import secrets
from datetime import datetime, timedelta
from typing import Final

from argon2 import PasswordHasher
from argon2.exceptions import VerificationError
from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from api.api_keys.schemas import ApiKeyCreate, ApiKeySpec
from api.api_keys.service import SESSION_PREFIX, create_key, revoke_key
from api.auth.audit_chain import Actor
from api.auth.cookies import SESSION_SECONDS
from api.auth.guard import authenticate
from api.auth.permissions import Caller
from api.auth.tokens import parse_token
from api.db.database import Database, Meta
from api.db.tables.api_keys import ApiKey
from api.db.tables.organizations import Organization
from api.http.errors import UnauthenticatedError

PASSWORD_ROW: Final = "console_password"
# Without what looks alike: it is read from a terminal and typed.
PASSWORD_ALPHABET: Final = "abcdefghjkmnpqrstuvwxyz23456789"
# A sign-in ends so many sessions that are over; the next one ends others.
ENDED_AT_ONCE: Final = 1000
HASHER: Final = PasswordHasher()


def new_password(session: Session, *, replace: bool = False) -> str | None:
    """Makes the administrator's password (5 x 5 characters, 124 bits); None if there is one.

    :param replace: make another one, and let the one that there is open nothing any more.
    """
    row = session.get(Meta, PASSWORD_ROW)
    if row is not None and not replace:
        return None
    words = ("".join(secrets.choice(PASSWORD_ALPHABET) for _ in range(5)) for _ in range(5))
    password = "-".join(words)
    session.merge(Meta(key=PASSWORD_ROW, value=HASHER.hash(password)))
    return password


def replace_password(database: Database, request_id: str) -> str:
    """Another password. The one before opens nothing any more, and sessions that are open end."""
    with database.write() as session:
        password = new_password(session, replace=True)
        now = database.now(session)
        _end_sessions(session, now, request_id, ApiKey.expires_at > now, most=None)
    assert password is not None
    return password


def sign_in(database: Database, secret: str, request_id: str) -> str:
    """The token of a session.

    :param secret: the password, or the whole token of a key.
    :raises UnauthenticatedError: it is neither.
    """
    if parse_token(secret) is not None:
        with database.read() as session:
            authenticate(session, f"Bearer {secret}", database)
        return secret
    with database.read() as session:
        row = session.get(Meta, PASSWORD_ROW)
        kept = row.value if row is not None else None
    # Outside of a transaction: to compare takes tens of milliseconds on purpose.
    if kept is None or not _fits(kept, secret):
        raise UnauthenticatedError(
            "Neither the console password nor a valid API key.",
            code="SIGN_IN_FAILED",
            hint="The first `headrace up` or `python -m api bootstrap` printed the password. You "
            "can also sign in with an API key (hr_user_...).",
        )
    with database.write() as session:
        now = database.now(session)
        _end_sessions(session, now, request_id, ApiKey.expires_at <= now, most=ENDED_AT_ONCE)
        return _session_key(session, database, request_id)


def sign_out(database: Database, token: str, request_id: str) -> None:
    """Ends a session: the key that was made for it is revoked. A key of the user's own stays."""
    parsed = parse_token(token)
    if parsed is None:
        return
    with database.write() as session:
        key = session.scalars(select(ApiKey).where(ApiKey.public_id == parsed.public_id)).first()
        if key is None or not secrets.compare_digest(key.secret_sha256, parsed.secret_sha256):
            return
        if key.name.startswith(SESSION_PREFIX):
            caller = Caller(key.id, key.org_id, role="owner")
            actor = Actor(caller, request_id, database.now(session))
            revoke_key(session, actor, key_id=key.id, if_match=None)


def _fits(kept: str, password: str) -> bool:
    try:
        return HASHER.verify(kept, password)
    except VerificationError:
        return False


def _end_sessions(
    session: Session,
    now: datetime,
    request_id: str,
    which: ColumnElement[bool],
    *,
    most: int | None,
) -> None:
    """Revokes keys of sessions, so that the nodes forget them. Their records stay, for the audit
    and the bill name them; lists leave them out."""
    wanted = select(ApiKey).where(
        ApiKey.name.startswith(SESSION_PREFIX, autoescape=True), ApiKey.revoked_at.is_(None), which
    )
    for key in session.scalars(wanted.order_by(ApiKey.id).limit(most)).all():
        caller = Caller("console", key.org_id, role="owner")
        revoke_key(session, Actor(caller, request_id, now), key_id=key.id, if_match=None)


def _session_key(session: Session, database: Database, request_id: str) -> str:
    organization = session.scalars(select(Organization).where(Organization.name == "default")).one()
    now = database.now(session)
    issued = create_key(
        session,
        Actor(Caller("console", organization.id, role="owner", operator=True), request_id, now),
        # The name is reserved, so the checks of ordinary names are passed by on purpose.
        ApiKeyCreate.model_construct(
            name=f"{SESSION_PREFIX}{secrets.token_hex(6)}",
            display_name="Console session",
            labels={},
            annotations={},
            project_id=None,
            organization_id=None,
            spec=ApiKeySpec(role="owner", expires_at=now + timedelta(seconds=SESSION_SECONDS)),
        ),
        operator=True,
    )
    assert issued.token is not None
    return issued.token.text
