"""How far groups have read partitions: many small questions to one node, bounded in time.

A committed offset and the end of its log come from one answer of the partition, so a lag is exact
for the moment it was asked. What was not answered is unknown, and never 0.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, cast

import grpc

from headrace.wire import stream_pb2, stream_pb2_grpc

AT_ONCE: Final = 64
SECONDS: Final = 3.0

Metadata = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Question:
    """How far has a group read a partition? Numbers as the cluster gave them."""

    group: int
    topic: int
    created_revision: int
    partition: int


@dataclass(frozen=True, slots=True)
class Position:
    """``committed``: the next offset to handle; None if the group never committed here."""

    committed: int | None
    start_offset: int
    end_offset: int

    @property
    def lag(self) -> int:
        """Records that are there and not handled; without a commit all of them."""
        begin = max(self.committed or 0, self.start_offset)
        return max(0, self.end_offset - begin)


class _Pending(Protocol):
    def result(self) -> stream_pb2.FetchOffsetsReply: ...


def ask(
    channel: grpc.Channel, metadata: Metadata, questions: Sequence[Question]
) -> dict[Question, Position]:
    """The answers that came in time; a question without one is not among them."""
    deadline = time.monotonic() + SECONDS
    call = cast("Callable[..., _Pending]", stream_pb2_grpc.StreamStub(channel).FetchOffsets.future)
    found: dict[Question, Position] = {}
    for begin in range(0, len(questions), AT_ONCE):
        some = questions[begin : begin + AT_ONCE]
        left = deadline - time.monotonic()
        if left <= 0:
            break
        pending = [
            call(
                stream_pb2.FetchOffsetsRequest(
                    topic=each.topic,
                    created_revision=each.created_revision,
                    partition=each.partition,
                    group=each.group,
                ),
                timeout=left,
                metadata=metadata,
            )
            for each in some
        ]
        for question, waiting in zip(some, pending, strict=True):
            try:
                reply = waiting.result()
            except grpc.RpcError:
                continue
            found[question] = Position(
                reply.offset if reply.found else None, reply.log_start, reply.high_watermark
            )
    return found


def lag_of(found: dict[Question, Position], questions: Sequence[Question]) -> int | None:
    """The sum over some partitions; None unless every one of them, and at least one, is known."""
    if not questions or any(each not in found for each in questions):
        return None
    return sum(found[each].lag for each in questions)
