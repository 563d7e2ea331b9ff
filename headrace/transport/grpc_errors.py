"""Wire answers to typed errors: the Error message, gRPC statuses, fetch statuses. Owns no class and
no policy."""

from __future__ import annotations

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from headrace.errors import (
    AccessDenied,
    DeadlineExceeded,
    Fatal,
    HeadraceError,
    Invalid,
    Kind,
    NotFound,
    OutcomeUnknown,
    Throttled,
    Unauthenticated,
    Unreachable,
    class_of,
)
from headrace.wire import stream_pb2 as wire

_DETAILS = "grpc-status-details-bin"

_KINDS: dict[int, Kind] = {
    wire.TERMINAL: Kind.TERMINAL,
    wire.RETRY_SAME_NODE: Kind.RETRY_SAME_NODE,
    wire.RETRY_OTHER_NODE: Kind.RETRY_OTHER_NODE,
    wire.COMMITTED_UNKNOWN: Kind.COMMITTED_UNKNOWN,
    wire.SESSION_EXPIRED: Kind.SESSION_EXPIRED,
}

# Statuses that come without our details: from gRPC itself, a proxy, or a node that is going down.
_BARE: dict[grpc.StatusCode, type[HeadraceError]] = {
    grpc.StatusCode.UNAVAILABLE: Unreachable,
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineExceeded,
    grpc.StatusCode.RESOURCE_EXHAUSTED: Throttled,
    grpc.StatusCode.UNAUTHENTICATED: Unauthenticated,
    grpc.StatusCode.PERMISSION_DENIED: AccessDenied,
    grpc.StatusCode.NOT_FOUND: NotFound,
    grpc.StatusCode.INVALID_ARGUMENT: Invalid,
    grpc.StatusCode.CANCELLED: OutcomeUnknown,
    grpc.StatusCode.UNKNOWN: OutcomeUnknown,
    grpc.StatusCode.INTERNAL: OutcomeUnknown,
    grpc.StatusCode.ABORTED: OutcomeUnknown,
}


def error_of(error: wire.Error) -> HeadraceError:
    """The typed error of a wire Error."""
    kind = _KINDS.get(error.kind, Kind.TERMINAL)
    return class_of(error.code, kind)(
        _begun(error.message) or error.code,
        code=error.code or None,
        kind=kind,
        hint=_begun(error.hint) or None,
        retry_after=error.retry_after_ms / 1000 if error.retry_after_ms else None,
        expected=error.expected,
    )


def _begun(text: str) -> str:
    """The node begins its texts small, as gRPC does; here they become sentences for people."""
    return text[:1].upper() + text[1:]


def error_of_call(error: grpc.aio.AioRpcError, address: str) -> HeadraceError:
    """The typed error of a failed call to `address`."""
    found = _detail(error)
    if found is not None:
        typed = error_of(found)
    else:
        cls = _BARE.get(error.code(), Fatal)
        said = error.details() or error.code().name
        code = None if cls is not Fatal else error.code().name
        if cls is Unreachable:
            typed = cls(f"No answer from the node at {address}: {said}")
        else:
            typed = cls(f"The node at {address} answered {error.code().name}: {said}", code=code)
    typed.context.setdefault("address", address)
    return typed


def _detail(error: grpc.aio.AioRpcError) -> wire.Error | None:
    for name, value in error.trailing_metadata() or ():
        if name != _DETAILS or not isinstance(value, bytes):
            continue
        try:
            status = wire.Status.FromString(value)
            for any_message in status.details:
                detail = wire.Error()
                if any_message.Unpack(detail):
                    return detail
        except DecodeError:
            return None
    return None
