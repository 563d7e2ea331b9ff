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
    """The sum of one meter over one group. ``group`` is an hour, a day, `stream/topic`, a key's
    name, or an organization's name, as ``group_by`` asked. With `hour_topic` and `day_topic` it is
    the time, and ``topic`` is `stream/topic`."""

    group: str
    topic_id: str | None = None
    topic: str | None = None
    meter: str
    unit: str
    quantity: str
    cost: Money


class MeterTotal(BaseModel):
    """The sum of one meter over everything that was asked for."""

    meter: str
    unit: str
    quantity: str
    cost: Money


class UsageBody(BaseModel):
    """Usage of the report run that is shown now; no ``run_id`` means that no report ran yet."""

    run_id: str | None = None
    input_sha256: str | None = None
    computed_at: Timestamp | None = None
    group_by: GroupBy
    items: list[UsageItem]
    totals: list[MeterTotal]
    cost: list[Money]
