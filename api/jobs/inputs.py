"""What a job is given: names and prices, in order of id."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from api.http.resource import Timestamp
from api.jobs.result import Count


class NamedObject(BaseModel):
    """An id and its name."""

    id: str
    name: str


class NamedOrganization(NamedObject):
    """An organization and the time of its creation."""

    created_at: Timestamp


class NamedProject(NamedObject):
    """A project and its organization."""

    organization_id: str


class NamedStream(NamedObject):
    """A stream with its project and cluster."""

    organization_id: str
    project_id: str
    cluster_id: str


class NamedTopic(NamedStream):
    """A topic with its stream."""

    stream_id: str


class NamedKey(NamedObject):
    """The name of an API key."""

    organization_id: str
    role: str


class NamedSpan(BaseModel):
    """The number of partitions of a topic during [from, until). Without ``until``, the interval is
    open.
    """

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)

    topic_id: str
    organization_id: str
    project_id: str
    cluster_id: str
    generation: int
    partitions: int
    started_at: Annotated[Timestamp, Field(alias="from")]
    until: Timestamp | None = None


class PriceBody(BaseModel):
    """The price of ``unit_quantity`` units of a meter."""

    meter: str
    unit: str
    unit_quantity: Count
    unit_price: str


class PriceBookBody(BaseModel):
    """A version of the prices."""

    version: str
    currency: str
    monthly_minimum: str
    prices: list[PriceBody]


class DatedPriceBook(PriceBookBody):
    """A version of the prices and the time from which it applies. Hours that began earlier keep
    their prices.
    """

    effective_from: Timestamp


class ReportInputs(BaseModel):
    """The names and prices that a report needs, sorted by id, so that the same database and start
    time give the same text. ``as_of`` is the start of the run, up to which the lifecycle is known.
    ``price_books`` are those in effect until then, oldest first; ``price_book`` is the last of
    them.
    """

    kind: str
    as_of: Timestamp
    organizations: list[NamedOrganization]
    projects: list[NamedProject]
    clusters: list[NamedObject]
    streams: list[NamedStream]
    topics: list[NamedTopic]
    topic_lifecycle: list[NamedSpan]
    api_keys: list[NamedKey]
    price_book: PriceBookBody
    price_books: list[DatedPriceBook]
