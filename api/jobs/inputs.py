"""What a job is given: names and prices, in order of id."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from api.http.resource import Timestamp
from api.jobs.result import Count


class NamedObject(BaseModel):
    """A name by id."""

    id: str
    name: str


class NamedOrganization(NamedObject):
    """An organization and since when it is one."""

    created_at: Timestamp


class NamedProject(NamedObject):
    """A project and whose it is."""

    organization_id: str


class NamedStream(NamedObject):
    """A stream and where it is."""

    organization_id: str
    project_id: str
    cluster_id: str


class NamedTopic(NamedStream):
    """A topic and where it is."""

    stream_id: str


class NamedKey(NamedObject):
    """A principal, without any part of its secret."""

    organization_id: str
    role: str


class NamedSpan(BaseModel):
    """A topic with so many partitions over [from, until); without ``until`` it goes on."""

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
    """The price of ``unit_quantity`` of a meter's own unit."""

    meter: str
    unit: str
    unit_quantity: Count
    unit_price: str


class PriceBookBody(BaseModel):
    """A version of what things cost."""

    version: str
    currency: str
    monthly_minimum: str
    prices: list[PriceBody]


class DatedPriceBook(PriceBookBody):
    """A version of what things cost, and since when: hours that began before it cost what they
    did."""

    effective_from: Timestamp


class ReportInputs(BaseModel):
    """Every name and price a report needs, in order of id: the same database and start of the run
    give the same text. ``as_of`` is that start: up to then the lifecycle is known. ``price_books``
    are all that began by then, in that order; ``price_book`` is the last of them."""

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
