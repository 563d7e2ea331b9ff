"""What the scripted node remembers of its partitions, and what is to go wrong next."""

import struct
from dataclasses import dataclass, field

from headrace import codec
from headrace.wire import stream_pb2 as wire


@dataclass
class Producer:
    """What a partition remembers of one producer."""

    next_sequence: int = 0
    recent: dict[int, tuple[int, int]] = field(default_factory=dict)


@dataclass
class Log:
    """One partition."""

    stored: list[tuple[int, int, bytes]] = field(default_factory=list)
    end: int = 0
    start: int = 0
    producers: dict[bytes, Producer] = field(default_factory=dict)
    committed: dict[int, int] = field(default_factory=dict)
    generation: int = 0


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


def stored_batch(client_part: bytes, base_offset: int, append_time_us: int) -> bytes:
    """A client part behind the server's header, as docs/internals/log-format.md draws it."""
    size = 96 + len(client_part)
    tail = struct.pack(
        "<HHQqQQIIQ12s20s", 1, 0, base_offset, append_time_us, 0, 0, 7, 0, 0, b"", b""
    )
    head = b"HRB1" + struct.pack("<I", size)
    return head + struct.pack("<I", codec.crc32c(head + tail)) + tail + client_part
