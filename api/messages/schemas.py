"""What of a message crosses HTTP. Bytes are base64, so that every message comes through as it is;
64-bit numbers are decimal strings."""

import base64
import binascii
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BaseModel, Field, StrictInt, WithJsonSchema

from api.http.resource import Command, Int64, Moment, Timestamp

HEADERS_MAX: Final = 64
# A body holds at most 1 MiB, and base64 makes 4 of 3.
BASE64_CHARACTERS_MAX: Final = 1 << 20

From = Literal["latest", "earliest", "offset", "time"]


def _decodable(text: str) -> str:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("must be base64 (RFC 4648, with padding)") from None
    return text


BASE64_SCHEMA: Final = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
Base64 = Annotated[
    str,
    Field(max_length=BASE64_CHARACTERS_MAX),
    AfterValidator(_decodable),
    WithJsonSchema(
        {"type": "string", "pattern": BASE64_SCHEMA, "maxLength": BASE64_CHARACTERS_MAX}
    ),
]


class HeaderBody(BaseModel):
    """A header. Keys can repeat. Without ``value``, the header has no value."""

    key: str
    value: str | None = None


class MessageBody(BaseModel):
    """A stored message. ``key`` and ``value`` are base64; if absent, they are null, which differs
    from empty. ``timestamp`` is set by the producer, ``append_time`` by the node.
    """

    partition: int
    offset: Int64
    append_time: Timestamp
    timestamp: Timestamp
    key: str | None = None
    value: str | None = None
    headers: list[HeaderBody]


class PartitionView(BaseModel):
    """The offsets that a partition contains, and the offset at which the next page starts."""

    partition: int
    start_offset: Int64
    end_offset: Int64
    next_offset: Int64


class MessagePage(BaseModel):
    """Messages in the order of their append times, and the partitions from which they were read."""

    messages: list[MessageBody]
    partitions: list[PartitionView]


class HeaderWish(Command):
    """A header to publish."""

    key: Annotated[str, Field(max_length=1024)]
    value: Base64 | None = None


class MessagePublish(Command):
    """A message to publish. Without ``partition``, the partition is chosen by the key, as in the
    SDK.
    """

    partition: StrictInt | None = Field(default=None, ge=0, le=1023)
    key: Base64 | None = None
    value: Base64 | None = None
    headers: Annotated[
        list[HeaderWish], Field(max_length=HEADERS_MAX, default_factory=list[HeaderWish])
    ]
    timestamp: Moment | None = None


class PublishedBody(BaseModel):
    """The partition and offset of the published message."""

    partition: int
    offset: Int64
    append_time: Timestamp
