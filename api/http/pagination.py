"""Lists by keyset: a page, and an opaque token for the next one.

The token is AES-256-GCM over (version, last id, hash of the query, organization, expiry): it
cannot be read, forged, used with another query or by another organization, and it carries no
authority. Offsets are refused: a row inserted while somebody pages would shift them.
"""

import base64
import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Annotated, Final, Generic, TypeVar

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from fastapi import Query
from pydantic import BaseModel
from sqlalchemy import Select
from sqlalchemy.orm import InstrumentedAttribute, Session

from api.db.database import meta_value
from api.http.errors import InvalidRequestError, Violation

Item = TypeVar("Item")
Row = TypeVar("Row")

PAGE_SIZE_DEFAULT: Final = 50
PAGE_SIZE_MAX: Final = 1000
TOKEN_LIFE: Final = timedelta(days=3)
TOKEN_VERSION: Final = 1
NONCE_BYTES: Final = 12

PageSize = Annotated[
    int, Query(ge=0, description=f"At most so many items; above {PAGE_SIZE_MAX} it is lowered.")
]
PageToken = Annotated[
    str, Query(max_length=1024, description="The `next_page_token` of the previous page.")
]
NewestFirst = Annotated[bool, Query(description="Sort newest first.")]


class Page(BaseModel, Generic[Item]):
    """Some items, and where the next ones start. Only an absent token means the end."""

    items: list[Item]
    next_page_token: str | None = None


@dataclass(frozen=True, slots=True)
class PageRequest:
    """Which page of which query. ``query`` holds every parameter that chooses the items."""

    org_id: str
    query: tuple[tuple[str, str], ...]
    size: int
    token: str
    now: datetime
    newest_first: bool = False

    def limit(self) -> int:
        """How many items the page may hold; 0 asks for the default."""
        return min(self.size or PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX)

    def query_hash(self) -> str:
        """Short, stable name of the query."""
        return hashlib.sha256(json.dumps(sorted(self.query)).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Filter:
    """Which items a list holds: the members of a subclass are the parameters of its request."""

    def members(self) -> dict[str, object]:
        """Every parameter: what a page token is bound to."""
        return asdict(self)

    def given(self) -> dict[str, object]:
        """The parameters that are not empty: columns, and what they must be."""
        return {name: value for name, value in self.members().items() if value}


@dataclass(frozen=True, slots=True)
class Paging:
    """What a request says of the page that it wants. ``clock`` is the database's."""

    size: int
    token: str
    clock: Callable[[Session], datetime]

    def of(
        self,
        session: Session,
        org_id: str,
        name: str,
        members: Mapping[str, object],
        *,
        newest_first: bool = False,
    ) -> PageRequest:
        """The page of a list. ``members`` holds every parameter that chooses its items."""
        said = {each: "" if value is None else str(value) for each, value in members.items()}
        query = (("list", name), *said.items())
        return PageRequest(org_id, query, self.size, self.token, self.clock(session), newest_first)


def page_of(
    session: Session,
    statement: Select[Row],
    key: InstrumentedAttribute[str],
    request: PageRequest,
    render: Callable[[Session, Sequence[Row]], list[Item]],
) -> Page[Item]:
    """One page of ``statement`` in order of ``key``, and the token of the next page if there is
    one."""
    if request.token:
        last = last_shown(session, request)
        statement = statement.where(key < last if request.newest_first else key > last)
    order = key.desc() if request.newest_first else key
    rows = session.scalars(statement.order_by(order).limit(request.limit() + 1)).all()
    shown = rows[: request.limit()]
    items = render(session, shown)
    if len(rows) == len(shown):
        return Page(items=items)
    last = str(getattr(shown[-1], key.key))
    return Page(items=items, next_page_token=token_after(session, request, last))


def last_shown(session: Session, request: PageRequest) -> str:
    """The key of the last item of the page before; empty for the first page.

    :raises InvalidRequestError: the token is forged, expired, or of another query.
    """
    return _open(_cipher(session), request) if request.token else ""


def token_after(session: Session, request: PageRequest, last: str) -> str:
    """The token of the page that begins behind a key."""
    return _seal(_cipher(session), request, last)


def _cipher(session: Session) -> AESGCM:
    return AESGCM(bytes.fromhex(meta_value(session, "page_token_key")))


def _seal(cipher: AESGCM, request: PageRequest, last: str) -> str:
    expires = int((request.now + TOKEN_LIFE).timestamp())
    text = json.dumps([TOKEN_VERSION, last, request.query_hash(), request.org_id, expires])
    nonce = os.urandom(NONCE_BYTES)
    sealed = nonce + cipher.encrypt(nonce, text.encode(), None)
    return _text(sealed)


def _text(sealed: bytes) -> str:
    return base64.urlsafe_b64encode(sealed).decode().rstrip("=")


def _open(cipher: AESGCM, request: PageRequest) -> str:
    try:
        sealed = base64.urlsafe_b64decode(request.token + "=" * (-len(request.token) % 4))
        if _text(sealed) != request.token:
            raise _refused("it was not issued by this API")
        text = cipher.decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], None)
        version, last, query_hash, org_id, expires = json.loads(text)
    except (ValueError, InvalidTag) as error:
        raise _refused("it was not issued by this API") from error
    if version != TOKEN_VERSION or expires < request.now.timestamp():
        raise _refused("it has expired")
    if query_hash != request.query_hash() or org_id != request.org_id:
        raise _refused("it belongs to another query")
    return str(last)


def _refused(why: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"The page token is not valid: {why}.",
        code="PAGE_TOKEN_INVALID",
        hint="List again from the first page, with the same filters for every page.",
        violations=[Violation("?page_token", "PAGE_TOKEN_INVALID", why)],
    )
