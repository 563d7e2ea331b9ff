"""Positions of consumer groups in partitions: many small queries to one node, bounded in time.

A committed offset and the end of its log come from one answer of the partition, so a lag is exact
for the moment it was asked. What was not answered is unknown, and never 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import grpc

from api.node.fan_out import Metadata, Send, answers
from headrace.wire import stream_pb2, stream_pb2_grpc


@dataclass(frozen=True, slots=True)
class PositionQuery:
    """A group and a partition, as numbers of the cluster."""

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
        """Records that were not handled; without a commit, all of them."""
        begin = max(self.committed or 0, self.start_offset)
        return max(0, self.end_offset - begin)


def ask(
    channel: grpc.Channel, metadata: Metadata, queries: Sequence[PositionQuery]
) -> dict[PositionQuery, Position]:
    """The answers that came in time; a query without one is not among them."""
    send = cast(
        "Send[stream_pb2.FetchOffsetsRequest, stream_pb2.FetchOffsetsReply]",
        stream_pb2_grpc.StreamStub(channel).FetchOffsets.future,
    )
    requests = [
        stream_pb2.FetchOffsetsRequest(
            topic=each.topic,
            created_revision=each.created_revision,
            partition=each.partition,
            group=each.group,
        )
        for each in queries
    ]
    found: dict[PositionQuery, Position] = {}
    for query, reply in zip(queries, answers(send, metadata, requests), strict=True):
        if reply is not None:
            found[query] = Position(
                reply.offset if reply.found else None, reply.log_start, reply.high_watermark
            )
    return found


def lag_of(found: dict[PositionQuery, Position], queries: Sequence[PositionQuery]) -> int | None:
    """The sum over some partitions; None unless every one of them, and at least one, is known."""
    if not queries or any(each not in found for each in queries):
        return None
    return sum(found[each].lag for each in queries)
