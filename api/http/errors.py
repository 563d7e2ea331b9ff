"""What can go wrong, as types, and the one table that says which HTTP status each is.

    DomainError
    |-- InvalidRequestError        a field or parameter is wrong; one Violation per fault
    |   `-- FieldImmutableError
    |-- UnauthenticatedError  ForbiddenError  NotFoundError  MethodNotAllowedError
    |-- ConflictError              the state forbids it
    |   |-- NameTakenError  SecretAlreadyIssuedError  IdempotencyKeyInProgressError
    |-- PreconditionFailedError  PreconditionRequiredError
    |-- IdempotencyKeyReusedError
    |-- PayloadTooLargeError  HeadersTooLargeError  UnsupportedMediaTypeError
    |-- RequestTimeoutError        the request did not come in time
    |-- RateLimitedError           the principal asked too often
    |-- ResultRejectedError        a report's result does not hold what its manifest says
    `-- UnavailableError           the database is away or busy

Services raise these and know no HTTP. The bodies are problem+json (RFC 9457): ``code`` is
contract, ``detail`` is not. This module refuses to describe our own faults to the caller: they are
INTERNAL and a request id.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from pydantic import JsonValue as Json

PROBLEM_MEDIA_TYPE: Final = "application/problem+json"
# An answer never grows with the request: who sends nonsense by the megabyte gets a page back.
VIOLATIONS_SHOWN_MAX: Final = 20
TEXT_SHOWN_MAX: Final = 1000


def shown(text: str) -> str:
    """The text, or its beginning and how much there is."""
    if len(text) <= TEXT_SHOWN_MAX:
        return text
    return f"{text[:TEXT_SHOWN_MAX]}.. ({len(text)} characters)"


@dataclass(frozen=True, slots=True)
class Violation:
    """One fault of a request: where (a JSON pointer or ``?parameter``), which, and the bound it
    broke."""

    pointer: str
    code: str
    detail: str
    limit: str | None = None
    actual: str | None = None

    def as_json(self) -> dict[str, Json]:
        """The member of ``errors`` for this fault."""
        body: dict[str, Json] = {
            "pointer": shown(self.pointer), "code": self.code, "detail": shown(self.detail),
        }  # fmt: skip
        if self.limit is not None:
            body["limit"] = self.limit
        if self.actual is not None:
            body["actual"] = shown(self.actual)
        return body


class DomainError(Exception):
    """A refusal with a stable code. ``detail`` says what and why, ``hint`` what to do next."""

    code: ClassVar[str] = "INTERNAL"
    title: ClassVar[str] = "Internal error"
    retriable: ClassVar[bool] = False

    def __init__(
        self,
        detail: str,
        *,
        hint: str = "",
        code: str | None = None,
        violations: Sequence[Violation] = (),
        retry_after_seconds: int | None = None,
        **data: Json,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.hint = hint
        self.specific_code = code or self.code
        self.violations = tuple(violations)
        self.retry_after_seconds = retry_after_seconds
        self.data = data


class InvalidRequestError(DomainError):
    """Syntax, an unknown field or parameter, or a value out of its range."""

    code = "INVALID_REQUEST"
    title = "The request is not valid"


class FieldImmutableError(InvalidRequestError):
    """A field that is fixed at creation was given another value."""

    code = "FIELD_IMMUTABLE"
    title = "This field cannot change"


class UnauthenticatedError(DomainError):
    """No credential, or one that does not hold."""

    code = "UNAUTHENTICATED"
    title = "A valid key is needed"


class ForbiddenError(DomainError):
    """The caller is known and lacks the permission."""

    code = "PERMISSION_DENIED"
    title = "The key's role does not allow this"


class NotFoundError(DomainError):
    """Absent, or in another organization: the two look the same on purpose."""

    code = "NOT_FOUND"
    title = "The object does not exist"


class MethodNotAllowedError(DomainError):
    """The path exists and does not take this method."""

    code = "METHOD_NOT_ALLOWED"
    title = "The path does not support this method"


class ConflictError(DomainError):
    """The state of the object forbids the change."""

    code = "CONFLICT"
    title = "The state of the object forbids this"


class NameTakenError(ConflictError):
    """The parent has a child of that name; carries ``existing_id``."""

    code = "NAME_TAKEN"
    title = "The name is taken"


class SecretAlreadyIssuedError(ConflictError):
    """A replay of a request whose answer held a secret; the secret is not kept."""

    code = "SECRET_ALREADY_ISSUED"
    title = "The secret was shown once and is not kept"


class IdempotencyKeyInProgressError(ConflictError):
    """The same key is being worked on by another request right now."""

    code = "IDEMPOTENCY_KEY_IN_PROGRESS"
    title = "The first request with this key still runs"
    retriable = True


class PreconditionFailedError(DomainError):
    """If-Match names another revision than the present one."""

    code = "PRECONDITION_FAILED"
    title = "The object changed since you read it"


class PreconditionRequiredError(DomainError):
    """A change that can lose data requires If-Match."""

    code = "PRECONDITION_REQUIRED"
    title = "This change requires If-Match"


class IdempotencyKeyReusedError(DomainError):
    """The key was used for a different request."""

    code = "IDEMPOTENCY_KEY_REUSED"
    title = "The Idempotency-Key belongs to another request"


class PayloadTooLargeError(DomainError):
    """The body is above the limit."""

    code = "PAYLOAD_TOO_LARGE"
    title = "The body is too large"


class HeadersTooLargeError(DomainError):
    """The head of the request is above the limit."""

    code = "HEADERS_TOO_LARGE"
    title = "The head of the request is too large"


class RequestTimeoutError(DomainError):
    """The request did not come whole in time; nothing was done."""

    code = "REQUEST_TIMEOUT"
    title = "The request came too slowly"
    retriable = True


class UnsupportedMediaTypeError(DomainError):
    """The body is not JSON."""

    code = "UNSUPPORTED_MEDIA_TYPE"
    title = "The body must be JSON"


class RateLimitedError(DomainError):
    """The principal asked more often than it may; nothing was done."""

    code = "RATE_LIMITED"
    title = "Too many requests with this key"
    retriable = True


class ResultRejectedError(DomainError):
    """The files of a report do not match its manifest, or do not say what a report must say."""

    code = "RESULT_REJECTED"
    title = "The result of the report run was refused"


class UnavailableError(DomainError):
    """The database is away or busy. Read what is there before you repeat a change without a key."""

    code = "UNAVAILABLE"
    title = "Try again in a moment"
    retriable = True


STATUS: Final[dict[type[DomainError], int]] = {
    InvalidRequestError: 400,
    FieldImmutableError: 400,
    ResultRejectedError: 400,
    UnauthenticatedError: 401,
    ForbiddenError: 403,
    NotFoundError: 404,
    MethodNotAllowedError: 405,
    RequestTimeoutError: 408,
    ConflictError: 409,
    NameTakenError: 409,
    SecretAlreadyIssuedError: 409,
    IdempotencyKeyInProgressError: 409,
    PreconditionFailedError: 412,
    PayloadTooLargeError: 413,
    UnsupportedMediaTypeError: 415,
    IdempotencyKeyReusedError: 422,
    PreconditionRequiredError: 428,
    RateLimitedError: 429,
    HeadersTooLargeError: 431,
    DomainError: 500,
    UnavailableError: 503,
}

# Only refusals that depend on nothing but committed state are kept for replay: a 400 may be
# repaired and sent again.
STATUSES_KEPT_FOR_REPLAY: Final = frozenset({404, 409, 412})


def status_of(error: DomainError) -> int:
    """The HTTP status of an error's type."""
    return STATUS[type(error)]


def problem(error: DomainError, request_id: str) -> dict[str, Json]:
    """The problem+json body of an error."""
    body: dict[str, Json] = {
        "type": f"urn:headrace:error:{error.specific_code}",
        "title": error.title,
        "status": status_of(error),
        "detail": shown(error.detail),
        "instance": f"urn:req:{request_id}",
        "code": error.specific_code,
        "request_id": request_id,
        "retriable": error.retriable,
    }
    if error.hint:
        body["hint"] = error.hint
    if error.violations:
        first = error.violations[:VIOLATIONS_SHOWN_MAX]
        body["errors"] = [violation.as_json() for violation in first]
    body.update(error.data)
    return body
