"""Asks a cluster about groups, with the caller's own key: the node decides what it may see.

Every call has a deadline and every answer a bound.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from api.http.errors import NotFoundError
from api.node.messages import NodeCalls, refusals
from api.node.pool import NodePool
from api.node.positions import Position, PositionQuery, ask
from headrace.wire import stream_pb2, stream_pb2_grpc


@dataclass(frozen=True, slots=True)
class Place:
    """A project on a cluster, and who asks (``bearer``: the field Authorization)."""

    cluster_id: str
    address: str
    project_id: str
    project: str
    bearer: str = field(repr=False)


class GroupReader(NodeCalls):
    """The groups of one project."""

    def __init__(self, pool: NodePool, place: Place) -> None:
        super().__init__(pool, place.address, place.bearer)
        self.place = place

    def page(self, after: str, most: int) -> stream_pb2.ListGroupsReply:
        """Some groups, by name. A cluster that never heard of the project has none."""
        request = stream_pb2.ListGroupsRequest(
            project=self.place.project, after=after, groups_max=most
        )
        try:
            reply = self._call(lambda to: stream_pb2_grpc.GroupsStub(to).ListGroups, request)
        except NotFoundError as error:
            if error.specific_code == "PROJECT_NOT_FOUND":
                return stream_pb2.ListGroupsReply()
            raise
        return cast("stream_pb2.ListGroupsReply", reply)

    def described(self, name: str) -> stream_pb2.DescribeGroupReply | None:
        """A group and its members; None if there is none of this name here."""
        request = stream_pb2.DescribeGroupRequest(project=self.place.project, group=name)
        try:
            reply = self._call(lambda to: stream_pb2_grpc.GroupsStub(to).DescribeGroup, request)
        except NotFoundError:
            return None
        return cast("stream_pb2.DescribeGroupReply", reply)

    def topics(self) -> dict[str, stream_pb2.Topic]:
        """The project's topics as the cluster knows them, by name."""
        request = stream_pb2.DescribeRequest(project=self.place.project)
        reply = self._call(lambda to: stream_pb2_grpc.ClusterStub(to).Describe, request)
        found = cast("stream_pb2.DescribeReply", reply).topics
        return {topic.name: topic for topic in found if not topic.HasField("error")}

    def positions(self, queries: Sequence[PositionQuery]) -> dict[PositionQuery, Position]:
        """How far groups have read."""
        with refusals(), self._pool.lease(self._address) as connection:
            return ask(connection.calls, self._metadata, queries)
