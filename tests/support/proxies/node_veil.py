"""A node's admin service before a real node: it carries every call and writes it down. For a while
it leaves out of the answers what the node holds, as a node does that has not heard of it yet, or it
refuses, as one does that has too much to do.

Owns its port and its channel. Refuses to do anything by itself: what is done is done by the node.
"""

from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import contextmanager
from dataclasses import dataclass, field

import grpc

from dataplane.wire import node_pb2, node_pb2_grpc

Call = node_pb2.ApplyRequest | node_pb2.DescribeRequest


@dataclass
class NodeVeil(node_pb2_grpc.AdminServicer):
    """``hides``: topics are left out of Describe; ``refusal`` answers in the place of the node;
    ``asked``: every call; ``carried``: the commands that reached the node, and ``answers``: what it
    said to them."""

    node: node_pb2_grpc.AdminStub
    hides: bool = False
    refusal: Callable[[grpc.ServicerContext], None] | None = None
    asked: list[Call] = field(default_factory=list)
    carried: list[node_pb2.ApplyRequest] = field(default_factory=list)
    answers: list[node_pb2.ApplyReply] = field(default_factory=list)
    address: str = ""

    @property
    def puts(self) -> list[str]:
        """The ids of the topics that were put."""
        return [each.put_topic.topic_id for each in self.carried if each.HasField("put_topic")]

    def Apply(  # noqa: N802
        self, request: node_pb2.ApplyRequest, context: grpc.ServicerContext
    ) -> node_pb2.ApplyReply:
        """Carries a command."""
        self._see(request, context)
        self.carried.append(request)
        reply: node_pb2.ApplyReply = self.node.Apply(request, metadata=_key(context))
        self.answers.append(reply)
        return reply

    def Describe(  # noqa: N802
        self, request: node_pb2.DescribeRequest, context: grpc.ServicerContext
    ) -> node_pb2.DescribeReply:
        """Carries a question; what it hides, the answer does not show."""
        self._see(request, context)
        reply: node_pb2.DescribeReply = self.node.Describe(request, metadata=_key(context))
        if self.hides:
            reply.ClearField("topics")
        return reply

    def _see(self, request: Call, context: grpc.ServicerContext) -> None:
        self.asked.append(request)
        if self.refusal is not None:
            self.refusal(context)


@contextmanager
def veiled(node_address: str) -> Iterator[NodeVeil]:
    """The veil on a free port of the loopback."""
    with grpc.insecure_channel(node_address) as channel:
        veil = NodeVeil(node_pb2_grpc.AdminStub(channel))
        server = grpc.server(futures.ThreadPoolExecutor(4))
        node_pb2_grpc.add_AdminServicer_to_server(veil, server)
        veil.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
        server.start()
        try:
            yield veil
        finally:
            server.stop(None).wait()


def _key(context: grpc.ServicerContext) -> list[tuple[str, str]]:
    """Who asks: the node checks that by itself."""
    return [
        (name, str(value))
        for name, value in context.invocation_metadata()
        if name == "authorization"
    ]
