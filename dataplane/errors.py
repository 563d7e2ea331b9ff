"""What the host refuses, and how a refusal looks on the wire.

Owns the one table from error code to gRPC status. A service raises `Refused` with data; only
`rpc.py` turns it into a status, and only here is decided which. Refuses to carry secrets or stack
traces: both lists of words below are for people.
"""

from enum import IntEnum
from typing import Final

from headrace.wire import stream_pb2 as wire


class GrpcCode(IntEnum):
    """The status codes of gRPC that the host uses. grpcio itself is never loaded in the node."""

    OK = 0
    CANCELLED = 1
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    UNAUTHENTICATED = 16


STATUS_OF_CODE: Final[dict[str, GrpcCode]] = {
    "ALREADY_BOOTSTRAPPED": GrpcCode.FAILED_PRECONDITION,
    "CANCELLED": GrpcCode.CANCELLED,
    "COMMAND_FENCED": GrpcCode.ABORTED,
    "COMMAND_UNKNOWN": GrpcCode.UNIMPLEMENTED,
    "DEADLINE_EXCEEDED": GrpcCode.DEADLINE_EXCEEDED,
    "GROUP_FULL": GrpcCode.RESOURCE_EXHAUSTED,
    "GROUP_NOT_FOUND": GrpcCode.NOT_FOUND,
    "HOLD_RELEASED": GrpcCode.FAILED_PRECONDITION,
    "INTENT_STALE": GrpcCode.ABORTED,
    "INTERNAL": GrpcCode.INTERNAL,
    "INVALID_ARGUMENT": GrpcCode.INVALID_ARGUMENT,
    "KEY_PUBLIC_ID_TAKEN": GrpcCode.ALREADY_EXISTS,
    "KEY_REVOKED": GrpcCode.FAILED_PRECONDITION,
    "METHOD_UNKNOWN": GrpcCode.UNIMPLEMENTED,
    "NODES_TOO_FEW": GrpcCode.FAILED_PRECONDITION,
    "NOT_BOOTSTRAPPED": GrpcCode.UNAVAILABLE,
    "OBJECT_MOVED": GrpcCode.FAILED_PRECONDITION,
    "OFFSET_BEYOND_END": GrpcCode.OUT_OF_RANGE,
    "PARTITIONS_DECREASE": GrpcCode.FAILED_PRECONDITION,
    "PARTITION_UNAVAILABLE": GrpcCode.UNAVAILABLE,
    "PERMISSION_DENIED": GrpcCode.PERMISSION_DENIED,
    "PROJECT_NOT_FOUND": GrpcCode.NOT_FOUND,
    "REPLICATION_FIXED": GrpcCode.FAILED_PRECONDITION,
    "RESOURCE_EXHAUSTED": GrpcCode.RESOURCE_EXHAUSTED,
    "SESSION_EXPIRED": GrpcCode.FAILED_PRECONDITION,
    "SESSION_REPLACED": GrpcCode.ABORTED,
    "STOPPING": GrpcCode.UNAVAILABLE,
    "TOO_MANY_GROUPS": GrpcCode.RESOURCE_EXHAUSTED,
    "TOPIC_AMBIGUOUS": GrpcCode.INVALID_ARGUMENT,
    "TOPIC_CLOSING": GrpcCode.FAILED_PRECONDITION,
    "TOPIC_DELETED": GrpcCode.FAILED_PRECONDITION,
    "TOPIC_HELD": GrpcCode.FAILED_PRECONDITION,
    "TOPIC_NAME_TAKEN": GrpcCode.ALREADY_EXISTS,
    "TOPIC_NOT_FOUND": GrpcCode.NOT_FOUND,
    "UNAUTHENTICATED": GrpcCode.UNAUTHENTICATED,
}

TERMINAL: Final = wire.TERMINAL
RETRY_SAME_NODE: Final = wire.RETRY_SAME_NODE
SESSION_EXPIRED: Final = wire.SESSION_EXPIRED

# Of a message, in UTF-8. A status travels in trailers, percent-encoded, and again in its details.
# Clients take 8 KiB of those together, and a name that somebody sent may be megabytes long.
MESSAGE_BYTES_MAX: Final = 1000

_ERROR_TYPE_URL = "type.googleapis.com/headrace.stream.v1.Error"


def _shown(message: str) -> str:
    encoded = message.encode()
    if len(encoded) <= MESSAGE_BYTES_MAX:
        return message
    return f"{encoded[:MESSAGE_BYTES_MAX].decode(errors='ignore')}.. ({len(message)} characters)"


class Refused(Exception):
    """A typed refusal: what, why and what next. `code` stands in STATUS_OF_CODE."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        hint: str = "",
        kind: wire.ErrorKind = TERMINAL,
        retry_after_ms: int = 0,
    ) -> None:
        message = _shown(message)
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.hint = hint
        self.kind = kind
        self.retry_after_ms = retry_after_ms

    @staticmethod
    def of(error: wire.Error) -> "Refused":
        """The refusal that a metadata result carries."""
        return Refused(
            error.code,
            error.message,
            hint=error.hint,
            kind=error.kind,
            retry_after_ms=error.retry_after_ms,
        )

    def error(self) -> wire.Error:
        """The wire's Error, as it stands in a message of a stream or inside a status."""
        return wire.Error(
            code=self.code,
            kind=self.kind,
            message=self.message,
            hint=self.hint,
            retry_after_ms=self.retry_after_ms,
        )

    def grpc_code(self) -> GrpcCode:
        """The gRPC status of this code.

        A code outside the table is a defect of ours, so INTERNAL.
        """
        return STATUS_OF_CODE.get(self.code, GrpcCode.INTERNAL)

    def status(self) -> bytes:
        """The bytes of headrace.stream.v1.Status: what `grpc-status-details-bin` carries."""
        status = wire.Status(code=int(self.grpc_code()), message=self.message)
        detail = status.details.add()
        detail.type_url = _ERROR_TYPE_URL
        detail.value = self.error().SerializeToString(deterministic=True)
        return status.SerializeToString(deterministic=True)
