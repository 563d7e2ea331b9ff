"""What of usage crosses HTTP: decimal strings, never floats."""

from typing import Literal

from pydantic import BaseModel

from api.http.resource import Timestamp

GroupBy = Literal["hour", "day", "topic", "principal", "organization", "hour_topic", "day_topic"]


class Money(BaseModel):
    """An exact amount."""

    amount: str
    currency: str


class UsageItem(BaseModel):
    """The sum of one meter over one group. ``group`` is an hour, a day, `stream/topic`, the name of
    a key or of an organization, depending on ``group_by``. With `hour_topic` and `day_topic`, it is
    the time, and ``topic`` is `stream/topic`.
    """

    group: str
    topic_id: str | None = None
    topic: str | None = None
    meter: str
    unit: str
    quantity: str
    cost: Money


class MeterTotal(BaseModel):
    """The sum of one meter over the requested range."""

    meter: str
    unit: str
    quantity: str
    cost: Money


class UsageBody(BaseModel):
    """Usage from the latest report. Without ``run_id``, there is no report yet."""

    run_id: str | None = None
    input_sha256: str | None = None
    computed_at: Timestamp | None = None
    group_by: GroupBy
    items: list[UsageItem]
    totals: list[MeterTotal]
    cost: list[Money]
