"""Errors of the scripted node, as the node puts them on the wire."""

from __future__ import annotations

import grpc

from headrace.wire import stream_pb2 as wire


def refusal(code: str, kind: wire.ErrorKind, message: str) -> wire.Error:
    """A wire error."""
    return wire.Error(code=code, kind=kind, message=message)


def abort(context: grpc.ServicerContext, number: int, error: wire.Error) -> None:
    """End a call with a typed error, as the node does."""
    status = wire.Status(code=number, message=error.message)
    status.details.add().Pack(error)
    context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
    code = next(c for c in grpc.StatusCode if c.value[0] == number)
    context.abort(code, error.message)
