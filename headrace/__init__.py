"""Headrace for Python: produce and consume, sync and async.

    import headrace

    with headrace.connect() as client:
        client.topic("orders").send({"id": 7, "total": 9.5}, key="cust-42")
        for m in client.topic("orders").consume(group="billing", start="earliest", until="end"):
            print(m.offset, m.key, m.value)

`aconnect()` has the same names with `await`. Importing this package loads neither gRPC nor an HTTP
client: the names below come on first use, so that a command line starts quickly and a node can use
the wire stubs alone.
"""

import importlib
import logging
import os
from typing import TYPE_CHECKING

from headrace.version import VERSION

if TYPE_CHECKING:
    from headrace.admin.admin import Admin, AsyncAdmin
    from headrace.async_client import AsyncClient, AsyncTopic
    from headrace.client import Client, Topic
    from headrace.client_factory import aconnect, connect
    from headrace.codec import Record
    from headrace.consumer.consumer import AsyncConsumer, Consumer
    from headrace.consumer.groups import GroupDescription, GroupMember, GroupSummary, PartitionLag
    from headrace.errors import HeadraceError
    from headrace.messages import Ack, Batch, BatchAck, Message, TopicPartition
    from headrace.messages import record_of as record
    from headrace.producer.accumulator import Delivery
    from headrace.producer.producer import AsyncProducer, Producer

_HOMES = {
    "Ack": ("headrace.messages", "Ack"),
    "Admin": ("headrace.admin.admin", "Admin"),
    "AsyncAdmin": ("headrace.admin.admin", "AsyncAdmin"),
    "AsyncClient": ("headrace.async_client", "AsyncClient"),
    "AsyncConsumer": ("headrace.consumer.consumer", "AsyncConsumer"),
    "AsyncProducer": ("headrace.producer.producer", "AsyncProducer"),
    "AsyncTopic": ("headrace.async_client", "AsyncTopic"),
    "Batch": ("headrace.messages", "Batch"),
    "BatchAck": ("headrace.messages", "BatchAck"),
    "Client": ("headrace.client", "Client"),
    "Consumer": ("headrace.consumer.consumer", "Consumer"),
    "Delivery": ("headrace.producer.accumulator", "Delivery"),
    "GroupDescription": ("headrace.consumer.groups", "GroupDescription"),
    "GroupMember": ("headrace.consumer.groups", "GroupMember"),
    "GroupSummary": ("headrace.consumer.groups", "GroupSummary"),
    "HeadraceError": ("headrace.errors", "HeadraceError"),
    "Message": ("headrace.messages", "Message"),
    "PartitionLag": ("headrace.consumer.groups", "PartitionLag"),
    "Producer": ("headrace.producer.producer", "Producer"),
    "Record": ("headrace.codec", "Record"),
    "Topic": ("headrace.client", "Topic"),
    "TopicPartition": ("headrace.messages", "TopicPartition"),
    "aconnect": ("headrace.client_factory", "aconnect"),
    "connect": ("headrace.client_factory", "connect"),
    "record": ("headrace.messages", "record_of"),
}

__version__ = VERSION

# gRPC reads these once, when it is loaded. Its core writes to stderr by itself, GOAWAYs and all;
# and its fork support starts threads in the child that crash on the parent's asyncio channels.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

# The application decides what is shown: without a handler of its own a library prints warnings to
# stderr.
logging.getLogger("headrace").addHandler(logging.NullHandler())


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'headrace' has no attribute {name!r}")
    return getattr(importlib.import_module(home[0]), home[1])


def __dir__() -> list[str]:
    return sorted(__all__)


__all__ = [
    "Ack",
    "Admin",
    "AsyncAdmin",
    "AsyncClient",
    "AsyncConsumer",
    "AsyncProducer",
    "AsyncTopic",
    "Batch",
    "BatchAck",
    "Client",
    "Consumer",
    "Delivery",
    "GroupDescription",
    "GroupMember",
    "GroupSummary",
    "HeadraceError",
    "Message",
    "PartitionLag",
    "Producer",
    "Record",
    "Topic",
    "TopicPartition",
    "__version__",
    "aconnect",
    "connect",
    "record",
]
