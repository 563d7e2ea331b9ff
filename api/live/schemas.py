"""What of the present crosses HTTP, as the data of events. Rates are whole numbers per second,
over the time between two looks; what is absent is unknown, which is not 0."""

from pydantic import BaseModel

from api.http.resource import Int64, Timestamp


class PointBody(BaseModel):
    """The rates of one look: of the caller's topics in, and, for the operator, of its nodes out.
    Replies to all readers count as out, whatever organization they are of."""

    at: Timestamp
    in_bytes: int | None = None
    in_records: int | None = None
    out_bytes: int | None = None


class LagBody(BaseModel):
    """The group that is furthest behind. ``seconds``: in so many its topics grow by its lag, as
    fast as they do now; absent while they do not grow."""

    group: str
    project_id: str
    records: Int64
    seconds: int | None = None


class BusyBody(BaseModel):
    """One of the topics that grow most."""

    topic_id: str
    name: str
    in_bytes: int


class LiveBody(BaseModel):
    """The caller's part of the latest look. ``groups_unknown``: groups with members whose lag could
    not be asked. ``silent``: clusters that did not answer; their figures are missing here."""

    now: PointBody
    stored_bytes: Int64
    topics: int
    groups: int
    groups_unknown: int
    worst_lag: LagBody | None = None
    busiest: list[BusyBody]
    silent: int
    warnings: list[str]


class HistoryBody(BaseModel):
    """The looks before, the oldest first: those that were made while anybody followed."""

    points: list[PointBody]
