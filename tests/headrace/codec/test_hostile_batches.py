"""Batches of hostile producers (X36, X38): both engines open no more than was announced and is
allowed, and nobody is stuck for ever on what cannot be read.
"""

from __future__ import annotations

import resource
import struct
import time
from types import ModuleType

import pyarrow as pa
import pytest

from headrace import codec
from headrace.client import Client
from headrace.codec import CodecError, Record, native_codec, python_codec
from headrace.codec.layout import CODECS, RECORDS_BYTES_MAX
from headrace.consumer.consumer import Consumer
from headrace.errors import CorruptPartition, Invalid
from headrace.messages import Batch, Message
from tests.headrace.scripted_log import stored_batch
from tests.headrace.scripted_node import ScriptedNode

ENGINES = [native_codec, python_codec]
GROWTH_KIB_MAX = 160 << 10
GOOD = codec.encode([Record(b"key", b"value" * 50, 5)], codec="zstd")
RECORDS_AT = 72
BOMB_BYTES = 4 << 30


def claimed(form: str, stored: bytes, records_bytes: int, count: int = 1) -> bytes:
    """A client part with a checksum that fits, and a payload and a size that need not."""
    part = bytearray(GOOD[:RECORDS_AT] + stored)
    struct.pack_into("<I", part, 0, len(part))
    struct.pack_into("<B", part, 9, CODECS.index(form))
    struct.pack_into("<I", part, 12, count)
    struct.pack_into("<I", part, 44, count - 1)
    struct.pack_into("<I", part, 64, records_bytes)
    struct.pack_into("<I", part, 4, codec.crc32c(bytes(part[8:])))
    return bytes(part)


def squeezed(content: bytes) -> bytes:
    """One zstd frame."""
    frame: bytes = pa.compress(content, codec="zstd", asbytes=True)
    return frame


def zstd_bomb() -> bytes:
    """4 GiB of zeros: blocks of one repeated byte, 128 KiB each."""
    frame = struct.pack("<IBB", 0xFD2FB528, 0x00, 0x38)
    size = 128 << 10
    block = (size << 3 | 1 << 1).to_bytes(3, "little") + b"\0"
    last = (size << 3 | 1 << 1 | 1).to_bytes(3, "little") + b"\0"
    return frame + block * (BOMB_BYTES // size - 1) + last


def lz4_bomb() -> bytes:
    """A literal, and one match that repeats it 2 GiB long."""
    return b"\x1f\0\x01\0" + b"\xff" * (8 << 20) + b"\0"


LIES = {
    "a zstd bomb": ("zstd", zstd_bomb(), 1 << 20),
    "a zstd bomb of the most": ("zstd", zstd_bomb(), RECORDS_BYTES_MAX),
    "an lz4 bomb": ("lz4", lz4_bomb()[: 7 << 20], 1 << 20),
    "a size of 4 GiB": ("zstd", squeezed(b"x" * 1000), 0xFFFFFFFF),
    "a size above the most": ("lz4", b"\x10x", RECORDS_BYTES_MAX + 1),
    "a size too small": ("zstd", squeezed(b"x" * 1000), 999),
    "a size too large": ("zstd", squeezed(b"x" * 1000), 1001),
    "a frame cut short": ("zstd", squeezed(b"x" * 1000)[:-3], 1000),
    "a frame in a frame": ("zstd", squeezed(squeezed(b"x" * 1000)), 1000),
    "two frames": ("zstd", squeezed(b"x" * 500) * 2, 1000),
    "bytes behind a frame": ("zstd", squeezed(b"x" * 1000) + b"more", 1000),
    "no frame": ("zstd", b"no zstd at all", 1000),
    "a block cut short": ("lz4", b"\xf0\xff", 1000),
    "a match before the begin": ("lz4", b"\x10x\xff\xff\x00", 1000),
    "nothing": ("lz4", b"\0", 1000),
}


@pytest.mark.parametrize("engine", ENGINES, ids=["native", "python"])
@pytest.mark.parametrize("lie", LIES)
def test_no_more_is_opened_than_was_announced_and_is_allowed(engine: ModuleType, lie: str) -> None:
    form, stored, records_bytes = LIES[lie]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.process_time()
    with pytest.raises(CodecError) as error:
        engine.decode(engine.client_batch(memoryview(claimed(form, stored, records_bytes))))
    assert error.value.code in ("BATCH_COMPRESSION", "BATCH_SIZE", "BATCH_COUNT")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < GROWTH_KIB_MAX
    # The engine in Python reads 7 MiB at its own pace; nobody waits for 4 GiB.
    assert time.process_time() - began < 10


def put(node: ScriptedNode, part: bytes) -> None:
    """Store a client part as a node would that looks at its checksum alone."""
    log = node.logs["single", 0]
    count = codec.client_batch(part).record_count
    with node.changed:
        log.stored.append((log.end, count, stored_batch(part, log.end, 1, log.seed)))
        log.end += count
        node.changed.notify_all()


def unreadable() -> bytes:
    return claimed("lz4", b"\xf0\xff", 1000, count=3)


def rest_of(consumer: Consumer) -> tuple[list[bytes | None], int]:
    """Every value, whatever cannot be read left out; and how often that was."""
    values: list[bytes | None] = []
    missed = 0
    while True:
        try:
            values.extend(message.value for message in consumer)
        except CorruptPartition:
            missed += 1
        else:
            return values, missed


@pytest.mark.parametrize("places", [(0,), (1,), (2,), (0, 1, 2)])
def test_a_batch_that_cannot_be_read_is_named_once_and_left_out(
    client: Client, node: ScriptedNode, places: tuple[int, ...]
) -> None:
    for place in range(3):
        if place in places:
            put(node, unreadable())
        else:
            client.topic("single").send(b"%d" % place)
    consumer = client.topic("single").consume(until="end")
    values, missed = rest_of(consumer)
    assert values == [b"%d" % place for place in range(3) if place not in places]
    assert missed == len(places)


def test_a_group_is_not_stuck_on_it_and_commits_behind_it(
    client: Client, node: ScriptedNode
) -> None:
    client.topic("single").send(b"before")
    put(node, unreadable())
    for expected in ([b"before"], []):
        with client.topic("single").consume(
            group="readers", start="earliest", until="end"
        ) as consumer:
            values, _ = rest_of(consumer)
        assert values == expected
    assert set(node.logs["single", 0].committed.values()) == {4}


def test_who_stops_at_it_finds_it_again(client: Client, node: ScriptedNode) -> None:
    put(node, unreadable())
    for _ in range(2):
        with (
            pytest.raises(CorruptPartition) as error,
            client.topic("single").consume(group="g", start="earliest") as consumer,
        ):
            next(consumer)
        assert "single[0]@0 cannot be read" in error.value.message
        assert "start at offset 3" in (error.value.hint or "")


@pytest.mark.parametrize("half", ["\ud800", "a\udfff"])
def test_half_of_a_pair_is_refused_before_it_is_sent(client: Client, half: str) -> None:
    topic = client.topic("single")
    for wrong in ({"key": half}, {"headers": {half: b"v"}}, {"headers": {"h": half}}):
        with pytest.raises(Invalid, match="surrogate"):
            topic.send("value", **wrong)
    for value in (half, {"member": half}):
        with pytest.raises(Invalid):
            topic.send(value)
    with pytest.raises(CodecError, match="BATCH_RECORD"):
        codec.encode([Record(None, b"v", 1, [(half, b"v")])])
    with pytest.raises(Invalid, match="64 bits"):
        topic.send("value", timestamp=2**63)


def test_batches_go_on_behind_it_too(client: Client, node: ScriptedNode) -> None:
    put(node, unreadable())
    client.topic("single").send(b"behind")
    consumer = client.topic("single").consume(until="end")
    with pytest.raises(CorruptPartition):
        next(consumer.batches())
    found: list[Batch] = list(consumer.batches())
    assert [value for batch in found for value in batch.values] == [b"behind"]


@pytest.mark.parametrize("moment", [-(2**63), 2**63 - 1, -62135596800000001, 253402300800000000])
def test_a_time_of_no_year_stops_nobody(client: Client, node: ScriptedNode, moment: int) -> None:
    put(node, codec.encode([Record(None, b"x", moment)]))
    (message,) = client.topic("single").consume(until="end")
    assert isinstance(message, Message)
    assert message.timestamp_us == moment
    assert message.timestamp.year in (1, 9999)
    assert "value=" in repr(message)
