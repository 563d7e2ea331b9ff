"""The console's session: a cookie that holds a key, and the token that proves who sends a write.

A browser sends a cookie with requests that any site starts. So a write authenticated by the cookie
must also carry X-CSRF-Token, which only a page of our own origin can learn. The cookie holds an
ordinary key: the nodes check it by themselves, and revoking the key ends the session. This module
refuses to know what a key may do.
"""

import hashlib
import secrets
from typing import Final

from fastapi import Request, Response

from api.http.errors import ForbiddenError

COOKIE: Final = "headrace_session"
CSRF_HEADER: Final = "x-csrf-token"
SESSION_SECONDS: Final = 12 * 3600
SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})


def credential(request: Request) -> str | None:
    """The field Authorization of a request: as it was sent, or what the session's cookie stands
    for.

    :raises ForbiddenError: the cookie came with a write and without its CSRF token.
    """
    sent = request.headers.get("authorization")
    token = request.cookies.get(COOKIE)
    if sent is not None or not token:
        return sent
    if request.method not in SAFE_METHODS:
        _demand_csrf(request, token)
    return f"Bearer {token}"


def csrf_token(token: str) -> str:
    """What a write of the session carries in X-CSRF-Token."""
    return hashlib.sha256(b"headrace csrf:" + token.encode("utf-8")).hexdigest()[:40]


def open_session(response: Response, token: str, *, secure: bool) -> None:
    """Gives the browser the session. No script can read it, no other site can send it."""
    response.set_cookie(
        COOKIE,
        token,
        max_age=SESSION_SECONDS,
        path="/",
        httponly=True,
        samesite="strict",
        secure=secure,
    )


def close_session(response: Response) -> None:
    """Takes the session from the browser."""
    response.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")


def _demand_csrf(request: Request, token: str) -> None:
    given = request.headers.get(CSRF_HEADER, "")
    if not secrets.compare_digest(given.encode("utf-8"), csrf_token(token).encode("utf-8")):
        raise ForbiddenError(
            "Writes with the console's cookie require a valid X-CSRF-Token; this one has none.",
            code="CSRF_TOKEN_INVALID",
            hint="Reload the console. Programs send `Authorization: Bearer hr_user_...`.",
        )
