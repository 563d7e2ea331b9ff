"""Bodies: how they are received, and what JSON this API takes.

A body comes whole within a time, is at most 1 MiB, and all bodies together hold a bounded amount of
memory. It is UTF-8, and it means one thing: no member twice, no NaN, no NUL, no half of a surrogate
pair. It is as deep and as wide as a body may be and no further, so that reading it costs
milliseconds, whatever it says. This module refuses to know what a body is about.
"""

import asyncio
import json
import time
from typing import Final, NoReturn

from fastapi import Request
from pydantic import JsonValue as Json
from starlette.types import Message, Receive

from api.http.errors import (
    InvalidRequestError,
    PayloadTooLargeError,
    RequestTimeoutError,
    UnavailableError,
    Violation,
)

BODY_BYTES_MAX: Final = 1 << 20
# What every body may hold whatever the others do; above it all share one budget.
FREE_BYTES: Final = 16 << 10
HELD_BYTES_MAX: Final = 64 << 20
DEPTH_MAX: Final = 32
MEMBERS_MAX: Final = 250
VALUES_MAX: Final = 20_000


class Held:
    """The bytes of bodies in this process beyond what each may hold for free. Of one event loop."""

    def __init__(self) -> None:
        self.bytes = 0

    def take(self, count: int) -> None:
        """Count bytes in.

        :raises UnavailableError: the budget is spent.
        """
        if self.bytes + count > HELD_BYTES_MAX:
            raise UnavailableError(
                "Too many large bodies are being received at once.",
                hint="Send the request again; bodies of up to 16 KiB are always received.",
                retry_after_seconds=1,
            )
        self.bytes += count


class Reception:
    """One body on its way in. `release` gives back what it held."""

    def __init__(self, receive: Receive, held: Held, seconds: float) -> None:
        self._receive = receive
        self._held = held
        self._seconds = seconds
        self._deadline = time.monotonic() + seconds
        self._received = 0
        self._charged = 0
        self._whole = False

    async def receive(self) -> Message:
        """The next message of the connection.

        :raises RequestTimeoutError: the body is not there in time.
        :raises PayloadTooLargeError: it is above the limit, though it announced no length.
        :raises UnavailableError: too many large bodies are on their way.
        """
        if self._whole:
            return await self._receive()
        try:
            async with asyncio.timeout(self._deadline - time.monotonic()):
                message = await self._receive()
        except TimeoutError:
            raise RequestTimeoutError(
                f"The body was not received within {self._seconds:g} s.",
                hint="Send the request again without pauses.",
            ) from None
        self._count(len(message.get("body", b"")))
        self._whole = not message.get("more_body", False)
        return message

    def _count(self, count: int) -> None:
        self._received += count
        if self._received > BODY_BYTES_MAX:
            raise PayloadTooLargeError(f"The body is above {BODY_BYTES_MAX} bytes.")
        above = max(0, self._received - FREE_BYTES) - self._charged
        if above > 0:
            self._held.take(above)
            self._charged += above

    def release(self) -> None:
        """The request is over."""
        self._held.bytes -= self._charged
        self._charged = 0


class JsonRequest(Request):
    """A request whose body is read by :func:`parse`, once."""

    async def json(self) -> Json:
        """The body's value; null if there is no body."""
        if not hasattr(self, "_json"):
            body = await self.body()
            self._json = parse(body) if body else None
        value: Json = self._json
        return value


def parse(body: bytes) -> Json:
    """The value of a body.

    :raises InvalidRequestError: says at which byte it is no JSON, or which of our rules it breaks.
    """
    if _is_wide(body):
        _too_wide()
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise _refused(
            "NOT_UTF8", f"The body is not UTF-8 at byte {error.start}.", "JSON is sent as UTF-8."
        ) from None
    try:
        value: Json = json.loads(text, object_pairs_hook=_members, parse_constant=_constant)
    except json.JSONDecodeError as error:
        at = len(text[: error.pos].encode("utf-8", "surrogatepass"))
        raise InvalidRequestError(
            f"The body is not JSON at byte {at}.",
            violations=[Violation("#", "JSON_INVALID", f"not JSON at byte {at}")],
        ) from None
    except RecursionError:
        _too_deep()
    except ValueError:
        # Python stops at 4300 digits: more would take quadratic time.
        raise _refused(
            "JSON_NUMBER",
            "The body contains a number with thousands of digits.",
            "No member accepts such a number.",
        ) from None
    _check(value)
    return value


def _is_wide(body: bytes) -> bool:
    """Whether more values than a body may hold stand between its commas and brackets. Looked at
    before anything is made of them: making them is what costs."""
    if len(body) <= VALUES_MAX:
        return False
    unescaped = body.replace(rb"\\", b"").replace(rb"\"", b"")
    outside = b"".join(unescaped.split(b'"')[::2])
    return sum(map(outside.count, (b",", b"[", b"{"))) >= VALUES_MAX


def _members(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    if len(pairs) > MEMBERS_MAX:
        _too_wide()
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _refused(
            "JSON_DUPLICATE_MEMBER",
            f"The body has the member {json.dumps(twice)} twice in one object.",
            "Send each member once: JSON parsers disagree on which value applies.",
        )
    return found


def _constant(word: str) -> NoReturn:
    raise _refused("JSON_NUMBER", f"{word} is not a JSON number.", "Omit the member.")


def _check(value: Json) -> None:
    """Level by level: a body may be wide or deep, and neither may cost a stack."""
    level: list[Json] = [value]
    for _ in range(DEPTH_MAX):
        below: list[Json] = []
        for each in level:
            if isinstance(each, str):
                _check_text(each)
            elif isinstance(each, dict):
                for name in each:
                    _check_text(name)
                below.extend(each.values())
            elif isinstance(each, list):
                below.extend(each)
            elif isinstance(each, float) and each - each != 0:
                _constant("Infinity")
        if not below:
            return
        level = below
    _too_deep()


def _check_text(text: str) -> None:
    if "\0" in text or not _has_meaning(text):
        raise _refused(
            "JSON_TEXT",
            "The body contains text with a NUL or an unpaired surrogate.",
            "Remove these characters.",
        )


def _has_meaning(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _too_deep() -> NoReturn:
    raise _refused(
        "JSON_TOO_DEEP", f"The body is nested deeper than {DEPTH_MAX} levels.", "No object is."
    )


def _too_wide() -> NoReturn:
    raise _refused(
        "JSON_TOO_WIDE",
        f"The body contains more than {MEMBERS_MAX} members in one object, or more than "
        f"{VALUES_MAX} values in all.",
        "No request needs that many.",
    )


def _refused(code: str, detail: str, hint: str) -> InvalidRequestError:
    return InvalidRequestError(detail, hint=hint, violations=[Violation("#", code, detail)])
