"""Every way a call can fail, as one tree. Owns the classes and the class of a code; knows no wire.

    HeadraceError
    |-- Retryable                 may succeed later; the SDK repeated it until its deadline
    |   |-- Unreachable           no node or no API answered
    |   |-- NotHere               another node leads this partition
    |   |-- Throttled             a quota or a full queue at the node: slow down
    |   |-- DeadlineExceeded      the deadline passed before an answer; nothing was changed
    |   |-- BufferFull            the producer's own memory is used up
    |   `-- SessionExpired        the producer or member must begin anew
    |-- OutcomeUnknown            may have been done: repeat only what is idempotent
    `-- Fatal                     repeating cannot help
        |-- NotFound
        |   |-- TopicNotFound
        |   `-- TopicRecreated    deleted and made again: this handle is of the earlier one
        |-- AccessDenied
        |   `-- Unauthenticated
        |-- Conflict              exists already, or changed meanwhile
        |-- Invalid               an argument or a document is wrong
        |   |-- RecordTooLarge
        |   |-- ConfigurationInvalid
        |   |-- StartRequired     a new group does not say where to begin
        |   `-- OffsetBeyondEnd   the log does not reach that far
        |-- QuotaExceeded         a count limit: waiting does not help
        |-- OffsetExpired         retention removed the records that were asked for
        |-- CorruptPartition      stored bytes fail their checksum: nothing wrong is served
        |-- Fenced                another member owns the partition now
        |-- OutOfSequence         the log does not continue where this producer does
        |-- Closed                used after close()
        `-- ServerMissing         the command needs headrace-server

`str(error)` says what happened, why, and what next. No message ever holds a secret.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class Kind(StrEnum):
    """What to do next; only RETRY_OTHER_NODE is a reason to look for another node."""

    TERMINAL = "TERMINAL"
    RETRY_SAME_NODE = "RETRY_SAME_NODE"
    RETRY_OTHER_NODE = "RETRY_OTHER_NODE"
    COMMITTED_UNKNOWN = "COMMITTED_UNKNOWN"
    SESSION_EXPIRED = "SESSION_EXPIRED"


class HeadraceError(Exception):
    """The root. `code` is stable (docs/errors.md); `message` is for people and may change."""

    code = "FAILED"
    kind = Kind.TERMINAL
    hint = ""
    violations: tuple[tuple[str, str], ...] = ()
    """What the REST API found wrong, as (pointer into the request, what it must be)."""

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        kind: Kind | None = None,
        hint: str | None = None,
        retry_after: float | None = None,
        expected: int | None = None,
        request_id: str | None = None,
        context: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        if code:
            self.code = code
        if kind is not None:
            self.kind = kind
        if hint:
            self.hint = hint
        self.retry_after = retry_after
        """Seconds the server asks to wait, or None."""
        self.expected = expected
        """OUT_OF_SEQUENCE: the sequence the log expects; OFFSET_OUT_OF_RANGE: the first offset
        kept."""
        self.request_id = request_id
        self.context: dict[str, str] = dict(context or {})

    @property
    def retryable(self) -> bool:
        """Whether repeating the same call later may succeed."""
        return self.kind in (Kind.RETRY_SAME_NODE, Kind.RETRY_OTHER_NODE)

    @property
    def docs_url(self) -> str:
        """Where this code is explained."""
        return f"docs/errors.md#{self.code.lower()}"

    def __str__(self) -> str:
        sentences = [_sentence(self.message)]
        if self.hint:
            sentences.append(_sentence(self.hint))
        trace = f"{self.code}, request {self.request_id}" if self.request_id else self.code
        return f"{' '.join(sentences)} ({trace})"


def _sentence(text: str) -> str:
    text = text.strip()
    return text if text.endswith((".", "!", "?")) else text + "."


class Retryable(HeadraceError):
    """May succeed later."""

    kind = Kind.RETRY_SAME_NODE


class Unreachable(Retryable):
    """No server answered."""

    code = "UNREACHABLE"
    kind = Kind.RETRY_OTHER_NODE
    hint = "Is the node running, and are the addresses right (HEADRACE_BOOTSTRAP)?"


class NotHere(Retryable):
    """This node does not lead the partition."""

    code = "NOT_PRIMARY"
    kind = Kind.RETRY_OTHER_NODE


class Throttled(Retryable):
    """The node asks for less."""

    code = "RESOURCE_EXHAUSTED"
    hint = "Slow down, or ask for a larger quota."


class DeadlineExceeded(Retryable):
    """Too late."""

    code = "DEADLINE_EXCEEDED"
    hint = "Give the call a longer timeout=, or check whether the node is overloaded."


class BufferFull(Retryable):
    """The producer holds as many unsent bytes as it may."""

    code = "BUFFER_FULL"
    hint = "Send more slowly, raise buffer_bytes=, or leave on_full='wait'."


class SessionExpired(Retryable):
    """The node no longer knows this producer or member."""

    code = "SESSION_EXPIRED"
    kind = Kind.SESSION_EXPIRED


class OutcomeUnknown(HeadraceError):
    """The request left, the answer did not arrive."""

    code = "OUTCOME_UNKNOWN"
    kind = Kind.COMMITTED_UNKNOWN
    hint = "Read the topic before sending it again, or accept that it may appear twice."


class Fatal(HeadraceError):
    """Repeating cannot help."""


class NotFound(Fatal):
    """The thing does not exist, or the key may not see it."""

    code = "NOT_FOUND"


class TopicNotFound(NotFound):
    """No such topic in the project."""

    code = "TOPIC_NOT_FOUND"
    kind = Kind.TERMINAL


class TopicRecreated(NotFound):
    """The topic of this handle was deleted; another one has its name."""

    code = "TOPIC_RECREATED"
    hint = "Ask the client for the topic again."


class AccessDenied(Fatal):
    """The key is known and may not do this."""

    code = "PERMISSION_DENIED"
    hint = "Use a key whose role allows it: editor produces and consumes, viewer consumes."


class Unauthenticated(AccessDenied):
    """No key, or one that is not known."""

    code = "UNAUTHENTICATED"
    hint = "Set HEADRACE_KEY, or run `headrace up`, which writes a profile."


class Conflict(Fatal):
    """Exists already, or changed since it was read."""

    code = "CONFLICT"


class Invalid(Fatal):
    """The request cannot be right."""

    code = "INVALID_ARGUMENT"


class RecordTooLarge(Invalid):
    """Larger than a batch of the topic may be."""

    code = "RECORD_TOO_LARGE"
    hint = "Split it, or increase max_message_bytes of the topic."


class ConfigurationInvalid(Invalid):
    """A URL, a profile or an environment variable cannot be used."""

    code = "CONFIGURATION_INVALID"


class StartRequired(Invalid):
    """A group without committed offsets must say where it begins."""

    code = "START_REQUIRED"
    hint = "Pass start='earliest' to read all records, or start='latest' to read new ones."


class QuotaExceeded(Fatal):
    """A count limit is reached."""

    code = "QUOTA_EXCEEDED"


class OffsetBeyondEnd(Invalid):
    """The log ends before this offset."""

    code = "OFFSET_OUT_OF_RANGE"
    hint = "Start at start='latest', or at an offset that was read."


class OffsetExpired(Fatal):
    """The records asked for are gone; `expected` is the first offset kept."""

    code = "TRUNCATED"
    hint = "Use start='earliest', or pass on_expired='skip' to continue at the oldest record."


class CorruptPartition(Fatal):
    """The node found bytes that fail their checksum and stopped the partition."""

    code = "CORRUPT"
    hint = "Contact the operator. See the log and /metrics of the node."


class Fenced(Fatal):
    """The partition has moved to another member of the group."""

    code = "FENCED"


class OutOfSequence(Fatal):
    """The log does not continue where this producer does."""

    code = "OUT_OF_SEQUENCE"
    hint = "Create a new producer. Report this if no other producer uses its id."


class Closed(Fatal):
    """The client, producer or consumer was closed."""

    code = "CLOSED"


class ServerMissing(Fatal):
    """A verb that only the server brings."""

    code = "SERVER_MISSING"


_BY_CODE: dict[str, type[HeadraceError]] = {
    "UNREACHABLE": Unreachable,
    "NOT_PRIMARY": NotHere,
    "RESOURCE_EXHAUSTED": Throttled,
    "RATE_LIMITED": Throttled,
    "SESSION_EXPIRED": SessionExpired,
    "DEADLINE_EXCEEDED": DeadlineExceeded,
    "TOPIC_NOT_FOUND": TopicNotFound,
    "TOPIC_RECREATED": TopicRecreated,
    "UNAUTHENTICATED": Unauthenticated,
    "MISSING_CREDENTIALS": Unauthenticated,
    "INVALID_CREDENTIALS": Unauthenticated,
    "EXPIRED_CREDENTIALS": Unauthenticated,
    "KEY_EXPIRED": Unauthenticated,
    "SYSTEM_TOPIC": AccessDenied,
    "PERMISSION_DENIED": AccessDenied,
    "FORBIDDEN": AccessDenied,
    "CONFLICT": Conflict,
    "ALREADY_EXISTS": Conflict,
    "NAME_TAKEN": Conflict,
    "INVALID_ARGUMENT": Invalid,
    "RECORD_TOO_LARGE": RecordTooLarge,
    "BATCH_TOO_LARGE": RecordTooLarge,
    "MESSAGE_TOO_LARGE": RecordTooLarge,
    "QUOTA_EXCEEDED": QuotaExceeded,
    "OFFSET_OUT_OF_RANGE": OffsetBeyondEnd,
    "OFFSET_BEYOND_END": OffsetBeyondEnd,
    "TRUNCATED": OffsetExpired,
    "CORRUPT": CorruptPartition,
    "DAMAGED": CorruptPartition,
    "FENCED": Fenced,
    "OUT_OF_SEQUENCE": OutOfSequence,
}

_BY_KIND: dict[Kind, type[HeadraceError]] = {
    Kind.RETRY_SAME_NODE: Retryable,
    Kind.RETRY_OTHER_NODE: NotHere,
    Kind.COMMITTED_UNKNOWN: OutcomeUnknown,
    Kind.SESSION_EXPIRED: SessionExpired,
}

_BY_HTTP: dict[int, type[HeadraceError]] = {
    400: Invalid,
    401: Unauthenticated,
    403: AccessDenied,
    404: NotFound,
    408: Retryable,
    409: Conflict,
    410: NotFound,
    412: Conflict,
    413: Invalid,
    415: Invalid,
    422: Conflict,
    428: Conflict,
    429: Throttled,
    431: Invalid,
    503: Unreachable,
    504: DeadlineExceeded,
}


def class_of(code: str, kind: Kind) -> type[HeadraceError]:
    """The class for a code that a server sent; unknown codes fall back to what their kind
    promises."""
    found = _BY_CODE.get(code)
    if found is QuotaExceeded and kind is Kind.RETRY_SAME_NODE:
        # The same word for a rate: this one is worth waiting for.
        return Throttled
    if found is not None:
        return found
    if kind is Kind.TERMINAL and code.endswith("_NOT_FOUND"):
        return NotFound
    if kind is Kind.TERMINAL and "FENCED" in code:
        return Fenced
    return _BY_KIND.get(kind, Fatal)


def of_problem(status: int, problem: Mapping[str, object]) -> HeadraceError:
    """The error for an application/problem+json answer of the REST API (RFC 9457)."""
    code = str(problem.get("code") or f"HTTP_{status}")
    cls = _BY_CODE.get(code) or _BY_HTTP.get(status) or (Retryable if status >= 500 else Fatal)
    title = str(problem.get("title") or f"The API answered {status}")
    detail = str(problem.get("detail") or "")
    errors = problem.get("errors")
    violations = tuple(
        (str(item.get("pointer", "")), str(item.get("detail") or item.get("code", "")))
        for item in (errors if isinstance(errors, list) else [])
        if isinstance(item, dict)
    )
    # A fault of the schema is said in the detail already.
    violated = [f"{pointer}: {said}" for pointer, said in violations if said not in detail]
    # What follows a full stop would begin after it: "cannot have 2.; --partitions: ..".
    parts = [(detail or title).rstrip("." if violated else ""), *violated]
    hint = problem.get("hint")
    request_id = problem.get("request_id")
    error = cls(
        "; ".join(parts),
        code=code,
        hint=str(hint) if hint else None,
        request_id=str(request_id) if request_id else None,
        context={"status": str(status)},
    )
    error.violations = violations
    return error
