"""Cluster.Describe: the nodes, and the topics a caller may see with their handles.

Owns the translation of names into (number, created_revision), read once by each client. A topic
that is not there is an Error inside its row, so that one missing name does not hide the others.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager

from dataplane.engine.frames import Caller
from dataplane.engine.rpc import Call
from dataplane.errors import Refused
from dataplane.metadata.state import State, Topic
from dataplane.metadata.tables import MESSAGE_BYTES_DEFAULT
from dataplane.services import names
from headrace.wire import stream_pb2 as wire


class ClusterService:
    """Answers about the cluster as this node knows it."""

    def __init__(
        self,
        *,
        reading: Callable[[], AbstractContextManager[State]],
        node_id: str,
        address: str,
    ) -> None:
        self._reading = reading
        self._node_id = node_id
        self._address = address

    async def describe(self, call: Call, request: wire.DescribeRequest) -> wire.DescribeReply:
        """Nodes and topics; every topic the key may see if none is named."""
        names.check_count(request.topics)
        if len(set(request.topics)) != len(request.topics):
            # A topic of many partitions, named a thousand times, would be an answer of megabytes.
            raise Refused(
                "INVALID_ARGUMENT", "a topic is named twice", hint="Name each topic once."
            )
        with self._reading() as state:
            reply = wire.DescribeReply(cluster_id=state.cluster_id, metadata_op=state.op)
            for node in sorted(state.nodes.values(), key=lambda node: node.id):
                # This node knows its own address best: the port may have been any free one.
                own = node.id == self._node_id
                reply.nodes.add(id=node.id, address=self._address if own else node.address)
            if request.topics:
                rows = [self._named(state, call.caller, request, name) for name in request.topics]
            else:
                topics = names.visible_topics(state, call.caller, request.project)
                rows = [self._row(topic) for topic in topics]
        reply.topics.extend(rows)
        return reply

    def _named(
        self, state: State, caller: Caller, request: wire.DescribeRequest, name: str
    ) -> wire.Topic:
        try:
            return self._row(names.topic_of(state, caller, request.project, name))
        except Refused as refusal:
            if refusal.code == "PERMISSION_DENIED":
                raise
            return wire.Topic(name=name, error=refusal.error())

    def _row(self, topic: Topic) -> wire.Topic:
        return wire.Topic(
            name=topic.spec.name(),
            number=topic.number,
            created_revision=topic.created_revision,
            id=topic.spec.topic_id,
            message_bytes_max=topic.spec.message_bytes_max or MESSAGE_BYTES_DEFAULT,
            codec=topic.spec.codec or "none",
            partitions=[
                wire.Partition(index=index, primary=self._node_id)
                for index in range(topic.spec.partitions)
            ],
        )
