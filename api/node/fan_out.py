"""Many small requests to one node: some at once, and bounded in time whatever the node does.

Refuses to guess: a request that was not answered in time has no answer, which is not 0.
"""

import time
from collections.abc import Callable, Sequence
from typing import Final, Protocol, TypeVar

import grpc

AT_ONCE: Final = 64
SECONDS: Final = 3.0

Metadata = tuple[tuple[str, str], ...]
Request = TypeVar("Request", contravariant=True)
Reply = TypeVar("Reply", covariant=True)


class Pending(Protocol[Reply]):
    """A request that was sent."""

    def result(self) -> Reply:
        """Its answer. Raises grpc.RpcError."""
        ...


class Send(Protocol[Request, Reply]):
    """Sends a request, and does not wait."""

    def __call__(
        self, request: Request, /, *, timeout: float, metadata: Metadata
    ) -> Pending[Reply]: ...


def answers(
    send: Send[Request, Reply], metadata: Metadata, requests: Sequence[Request]
) -> list[Reply | None]:
    """The answer to each, in their order; None where none came in time."""
    deadline = time.monotonic() + SECONDS
    found: list[Reply | None] = []
    for begin in range(0, len(requests), AT_ONCE):
        left = deadline - time.monotonic()
        if left <= 0:
            break
        some = requests[begin : begin + AT_ONCE]
        pending = [send(each, timeout=left, metadata=metadata) for each in some]
        found += [_answer(each.result) for each in pending]
    return found + [None] * (len(requests) - len(found))


def _answer(result: Callable[[], Reply]) -> Reply | None:
    try:
        return result()
    except grpc.RpcError:
        return None
