"""What the scripted node remembers of its partitions, and what is to go wrong next."""

import struct
import time
from dataclasses import dataclass, field

from headrace import codec
from headrace.codec import python_codec
from headrace.wire import stream_pb2 as wire


@dataclass
class Producer:
    """What a partition remembers of one producer."""

    next_sequence: int = 0
    recent: dict[int, tuple[int, int]] = field(default_factory=dict)


@dataclass
class Log:
    """One partition; ``seed`` as codec.partition_seed gives it."""

    seed: int
    stored: list[tuple[int, int, bytes]] = field(default_factory=list)
    end: int = 0
    start: int = 0
    producers: dict[bytes, Producer] = field(default_factory=dict)
    committed: dict[int, int] = field(default_factory=dict)
    generation: int = 0

    def append(self, part: bytes, count: int) -> int:
        """Store a client part; the offset of its first record."""
        base = self.end
        now_us = time.time_ns() // 1000
        self.stored.append((base, count, stored_batch(part, base, now_us, self.seed)))
        self.end += count
        return base

    def values(self) -> list[bytes | None]:
        """Of every record."""
        return [
            value
            for _, _, stored in self.stored
            for batch in codec.batches(stored, self.seed)
            for value in codec.decode(batch).values
        ]


@dataclass
class Faults:
    """What goes wrong next."""

    cut_before_append: int = 0
    cut_after_append: int = 0
    cut_every: int = 0
    cut_with: wire.Error | None = None
    """The status of a cut, INVALID_ARGUMENT; without one it is UNAVAILABLE."""
    garble_replies: int = 0
    refuse_commits: list[wire.Error] = field(default_factory=list)
    refuse: list[wire.Error] = field(default_factory=list)
    hold_replies: bool = False
    deaf: bool = False


def stored_batch(client_part: bytes, base_offset: int, append_time_us: int, seed: int) -> bytes:
    """A client part behind the server's header, as docs/internals/log-format.md draws it."""
    size = 96 + len(client_part)
    tail = struct.pack(
        "<HHQqQQIIQ28s4s", 1, 0, base_offset, append_time_us, 0, 0, 7, 0, 0, b"", client_part[4:8]
    )
    head = b"HRB1" + struct.pack("<I", size)
    return head + struct.pack("<I", python_codec.crc32c(head + tail, seed)) + tail + client_part
