"""Words of the command line: counts and durations for people, and errors in what was typed.

Servers and the SDK speak of members and calls; a user of the command line knows arguments, flags
and commands. Refuses to swallow an error: it changes the words alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from headrace.errors import Invalid, NotFound, TopicNotFound

if TYPE_CHECKING:
    from headrace.client import Client

_DURATIONS = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1))


OFFSET_MAX = (1 << 63) - 1


def offset_of(text: str) -> int | None:
    """The offset that was typed; None for what is none: other characters, or beyond 64 bits."""
    # ASCII: there are digits, such as a raised two, that are no numbers to int().
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(OFFSET_MAX))):
        return None
    offset = int(text)
    return offset if offset <= OFFSET_MAX else None


def count_of(count: int, noun: str) -> str:
    """`1 record`, `2 records`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def duration_of(milliseconds: object) -> object:
    """Exact, in the largest unit that divides it, as --retention takes it: `7d`. Words stay."""
    text = str(milliseconds)
    if not text.isdigit() or text == "0":
        return milliseconds
    number = int(text)
    return next(f"{number // size}{unit}" for unit, size in _DURATIONS if number % size == 0)


@contextmanager
def in_words_typed(names: Mapping[str, str], stream: str = "") -> Iterator[None]:
    """Name faults of a request by what was typed.

    :param names: pointer into the request (`#/name`, `?meter`) -> argument or flag.
    :param stream: the stream that the command names; it may be what is missing.
    """
    try:
        yield
    except Invalid as error:
        for pointer, said in error.violations:
            typed = names.get(pointer) or _member(pointer)
            place = pointer.lstrip("#/?").replace("/", ".")
            for written in (pointer, place):
                error.message = error.message.replace(f"{written}: {said}", f"{typed}: {said}")
        if error.violations:
            # The API's own hint is for clients that send JSON.
            error.hint = ""
        raise
    except NotFound as error:
        if error.code == "STREAM_NOT_FOUND" and stream:
            error.hint = f"Create it: headrace stream create {stream}"
        raise


def _member(pointer: str) -> str:
    """A member of the spec goes by --set."""
    name = pointer.removeprefix("#/spec/")
    return pointer if name == pointer else f"--set {name.partition('/')[0]}"


@contextmanager
def topics_named(client: Client, names: tuple[str, ...]) -> Iterator[None]:
    """Report a missing topic as `topic describe` does: one sentence, and the nearest name that
    exists."""
    try:
        yield
    except TopicNotFound as error:
        name = error.context.get("topic") or (names[0] if len(names) == 1 else "")
        if not name:
            raise
        raise client.admin.missing_topic(name) from None
