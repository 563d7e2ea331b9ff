"""What the engine's gRPC is compared with: grpcio servers that do next to nothing.

    python tests/performance/baseline.py sync|aio TOKEN

Serves Produce on a free port, prints the port, and ends when its input ends. A call is raw bytes
in and a constant out, its token is looked up, nothing is decoded and nothing reaches a disk: every
difference in work is in the baseline's favour.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

import grpc
import grpc.aio

SERVICE = "headrace.stream.v1.Stream"
THREADS = 16
REPLY = bytes(24)
"""As many bytes as a ProduceReply has."""


def allowed(metadata: Iterable[tuple[str, str | bytes]], tokens: frozenset[str]) -> bool:
    """Whether a call with this metadata carries a known token."""
    for name, value in metadata:
        if name == "authorization":
            return value in tokens
    return False


Behaviour = Callable[[bytes, grpc.ServicerContext], bytes | Awaitable[bytes]]


def handlers(behaviour: Behaviour) -> grpc.GenericRpcHandler:
    """Produce, without (de)serialisers: bytes are passed through."""
    method: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(behaviour)
    return grpc.method_handlers_generic_handler(SERVICE, {"Produce": method})


def serve_sync(tokens: frozenset[str]) -> None:
    """A thread pool, as most Python servers are run."""

    def produce(_request: bytes, context: grpc.ServicerContext) -> bytes:
        if not allowed(context.invocation_metadata() or (), tokens):
            raise PermissionError("unknown token")
        return REPLY

    server = grpc.server(ThreadPoolExecutor(THREADS))
    server.add_generic_rpc_handlers((handlers(produce),))
    print(server.add_insecure_port("127.0.0.1:0"), flush=True)
    server.start()
    sys.stdin.read()
    server.stop(None).wait()


async def serve_aio(tokens: frozenset[str]) -> None:
    """One event loop."""

    async def produce(_request: bytes, context: grpc.ServicerContext) -> bytes:
        if not allowed(context.invocation_metadata() or (), tokens):
            raise PermissionError("unknown token")
        return REPLY

    server = grpc.aio.server()
    server.add_generic_rpc_handlers((handlers(produce),))
    print(server.add_insecure_port("127.0.0.1:0"), flush=True)
    await server.start()
    await asyncio.to_thread(sys.stdin.read)
    await server.stop(None)


if __name__ == "__main__":
    kind, token = sys.argv[1:]
    known = frozenset({f"Bearer {token}"})
    if kind == "sync":
        serve_sync(known)
    else:
        asyncio.run(serve_aio(known))
