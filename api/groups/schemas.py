"""What of a consumer group crosses HTTP. Absent figures are unknown, which is not 0."""

from pydantic import BaseModel

from api.http.resource import Int64


class GroupBody(BaseModel):
    """A consumer group in a list. ``state`` is an open set: EMPTY, STABLE, MOVING. ``lag``, in
    records, is present if it was requested and all partitions responded.
    """

    name: str
    project_id: str
    cluster_id: str
    state: str
    generation: Int64
    members: int
    partitions: int
    topics: list[str]
    lag: Int64 | None = None


class PlaceBody(BaseModel):
    """A partition of a topic."""

    topic: str
    partition: int


class GroupMemberBody(BaseModel):
    """A member and its assigned partitions."""

    member: str
    partitions: list[PlaceBody]


class PositionBody(BaseModel):
    """The position of a group in a partition. Without ``committed``, the group has no committed
    offset; without ``end_offset``, the end is unknown; without ``member``, no member is
    assigned."""

    topic: str
    topic_id: str
    partition: int
    member: str | None = None
    committed: Int64 | None = None
    start_offset: Int64 | None = None
    end_offset: Int64 | None = None
    lag: Int64 | None = None


class GroupDetail(GroupBody):
    """A consumer group with its members and its positions in the partitions that it reads or has
    read. ``complete`` is false if the project has more partitions than were queried.
    """

    readers: list[GroupMemberBody]
    positions: list[PositionBody]
    complete: bool
