"""One running engine, seen from Python: the only module that touches ffi.

Owns an engine's life (open, start, stop, close) and the crossing of frames in both directions.
Refuses to interpret a frame. `receive` may be called by one thread at a time, `send` by any; no
call here holds the GIL while the engine works, and the engine never asks for it.
"""

import mmap
import struct
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

from native._engine import ffi, lib

FRAME_SIZE_MAX: Final = 9437184

_HEADER: Final = struct.Struct("<IHHIIQQ")
_RECEIVE_BYTES: Final = FRAME_SIZE_MAX + 1048576
_SEND_BYTES: Final = 4194304
_DETAIL_BYTES: Final = 512
_CANCELLED_COUNT: Final = 256
_RESOURCE_EXHAUSTED: Final = 8
_ID_BYTES: Final = 48
_KEY_ID_BYTES: Final = 16
_PADDING: Final = tuple(b"\0" * count for count in range(8))


class EngineError(Exception):
    """The engine refused or failed.

    `name` is the status in UPPER_SNAKE, `detail` the thing it is about (a path, a limit, the other
    cluster's id), possibly empty.
    """

    def __init__(self, status: int, detail: str) -> None:
        self.status = status
        self.name: str = ffi.string(lib.engine_status_name(status)).decode()
        self.detail = detail
        text: str = ffi.string(lib.engine_status_text(status)).decode()
        super().__init__(f"{self.name}: {text} ({detail})" if detail else f"{self.name}: {text}")


class Frame(NamedTuple):
    """One frame without its size. (shard, slot, slot_tag) name a call; args are u64."""

    kind: int
    shard: int = 0
    slot: int = 0
    slot_tag: int = 0
    arg0: int = 0
    arg1: int = 0
    body: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLimits:
    """How long what takes room without using it may stay, in ms; 0 = the engine's default."""

    host_beat_ms: int = 0
    silence_ms: int = 0
    idle_ms: int = 0
    age_ms: int = 0
    age_grace_ms: int = 0
    stall_ms: int = 0
    message_ms: int = 0
    snapshot_retry_ms: int = 0
    call_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfig:
    """What engine_open takes; 0 = the engine's default where a size or count is optional.

    `admin_key_id` is the public id (10 characters) of the one key that may administer,
    `admin_sha256` the SHA-256 of its secret (32 bytes).
    """

    data_path: Path
    cluster_id: str
    node_id: str
    admin_key_id: str
    admin_sha256: bytes
    host: str = "127.0.0.1"
    port: int = 0
    shards: int = 1
    shards_pinned: bool = False
    direct_io: bool = True
    journal_bytes: int = 0
    extent_bytes: int = 0
    memory_bytes: int = 0
    metering_window_s: int = 60
    partitions_max: int = 0
    limits: EngineLimits = EngineLimits()


def _text(value: str, size: int, name: str) -> bytes:
    """Zero-padded; a field that would be cut is refused here, before it names something else."""
    encoded = value.encode()
    if len(encoded) >= size:
        raise ValueError(f"{name} is longer than {size - 1} bytes")
    return encoded


class Engine:
    """A data directory's engine: opened (and recovered) by the constructor.

    Raises EngineError. Use as a context manager, or call `close`.
    """

    def __init__(self, config: EngineConfig) -> None:
        if len(config.admin_sha256) != 32:
            raise ValueError("admin_sha256 is not 32 bytes")
        self._engine: Any = ffi.NULL
        self._send_lock = threading.Lock()
        detail = ffi.new("char[]", _DETAIL_BYTES)
        target = ffi.new("struct engine **")
        native, self._keep = _native_config(config)
        status = lib.engine_open(native, target, detail, _DETAIL_BYTES)
        if status != 0:
            raise EngineError(status, ffi.string(detail).decode(errors="replace"))
        self._engine = target[0]
        # Mapped, not allocated: pages that no frame reached are never touched.
        self._buffer = mmap.mmap(-1, _RECEIVE_BYTES)
        self._buffer_pointer = ffi.from_buffer("uint8_t[]", self._buffer)
        self._cancelled = ffi.new("struct engine_frame[]", _CANCELLED_COUNT)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def start(self) -> None:
        """Bind the port and start the shards. Raises EngineError, ADDRESS_IN_USE among them."""
        detail = ffi.new("char[]", _DETAIL_BYTES)
        status = lib.engine_start(self._engine, detail, _DETAIL_BYTES)
        if status != 0:
            raise EngineError(status, ffi.string(detail).decode(errors="replace"))

    @property
    def port(self) -> int:
        """The port that is served, known after `start`."""
        return int(lib.engine_port(self._engine))

    def fileno(self) -> int:
        """A descriptor that is readable when frames may wait or a full ring has room again."""
        return int(lib.engine_host_fd(self._engine))

    def receive(self) -> list[Frame]:
        """Every frame that waits and fits one crossing, in order; possibly none."""
        size = lib.engine_receive(self._engine, self._buffer_pointer, _RECEIVE_BYTES)
        frames: list[Frame] = []
        buffer = self._buffer
        at = 0
        while at < size:
            length, kind, shard, slot, slot_tag, arg0, arg1 = _HEADER.unpack_from(buffer, at)
            body = buffer[at + 32 : at + length]
            frames.append(Frame(kind, shard, slot, slot_tag, arg0, arg1, body))
            at += (length + 7) & ~7
        return frames

    def send(self, frames: Iterable[Frame]) -> int:
        """Hand frames over in order. Returns how many were taken: fewer when a ring is full.

        The rest may be sent once `fileno` is readable. Raises EngineError for a malformed frame.
        One that is too large never holds up the others: a call's message ends that call with
        RESOURCE_EXHAUSTED, anything else ends the node by name (ENGINE_STOPPED).
        """
        taken = 0
        parts: list[bytes] = []
        sizes: list[int] = []
        waiting = 0
        with self._send_lock:
            for frame in frames:
                if 32 + len(frame.body) > FRAME_SIZE_MAX:
                    frame = _instead(frame)
                length = 32 + len(frame.body)
                if waiting + length > _SEND_BYTES and sizes:
                    crossed = self._cross(parts, sizes)
                    taken += crossed
                    if crossed < len(sizes):
                        return taken
                    parts, sizes, waiting = [], [], 0
                parts += (_HEADER.pack(length, *frame[:6]), frame.body, _PADDING[-length % 8])
                sizes.append((length + 7) & ~7)
                waiting += sizes[-1]
            return taken + self._cross(parts, sizes) if sizes else taken

    def _cross(self, parts: Sequence[bytes], sizes: Sequence[int]) -> int:
        """Frames taken of those joined from `parts`; `sizes` are theirs, padded."""
        joined = b"".join(parts)
        size = lib.engine_send(self._engine, ffi.from_buffer("uint8_t[]", joined), len(joined))
        if size < 0:
            raise EngineError(size, "a malformed frame")
        if size == len(joined):
            return len(sizes)
        taken = 0
        for length in sizes:
            if size < length:
                break
            size -= length
            taken += 1
        return taken

    def cancelled(self) -> list[tuple[int, int, int]]:
        """(shard, slot, slot_tag) of calls whose client is gone, each reported once."""
        found: list[tuple[int, int, int]] = []
        while True:
            count = lib.engine_cancelled(self._engine, self._cancelled, _CANCELLED_COUNT)
            for index in range(count):
                call = self._cancelled[index]
                found.append((call.shard, call.slot, call.slot_tag))
            if count < _CANCELLED_COUNT:
                return found

    def metrics(self) -> str:
        """The engine's part of /metrics, in the Prometheus text format."""
        size = int(lib.engine_metrics(self._engine, ffi.NULL, 0)) + 4096
        text = ffi.new("char[]", size)
        lib.engine_metrics(self._engine, text, size)
        return str(ffi.string(text).decode())

    def metric_total(self, name: str) -> int:
        """One figure of `metrics`, summed over the shards, without the text.

        Raises KeyError: no metric of this name has the shard as its only label.
        """
        total = ffi.new("uint64_t *")
        if lib.engine_metric_total(self._engine, name.encode(), total) != 0:
            raise KeyError(name)
        return int(total[0])

    def stop(self, timeout_ms: int) -> bool:
        """Refuse new calls, finish what is in flight, checkpoint; then no thread runs any more.

        Blocks without the GIL: answer frames meanwhile. False if something had to be abandoned or
        a shard had failed.
        """
        return int(lib.engine_stop(self._engine, max(0, timeout_ms))) == 0

    def close(self) -> None:
        """Give everything back. Stops at once what still runs. May be repeated."""
        engine, self._engine = self._engine, ffi.NULL
        if engine != ffi.NULL:
            lib.engine_close(engine)


def _instead(frame: Frame) -> Frame:
    """What crosses for a frame that is too large to cross."""
    if frame.kind in (lib.ENGINE_SEND_MESSAGE, lib.ENGINE_SEND_STATUS):
        return frame._replace(kind=lib.ENGINE_SEND_STATUS, arg0=_RESOURCE_EXHAUSTED, body=b"")
    return Frame(lib.ENGINE_HOST_FAILED)


def _native_config(config: EngineConfig) -> tuple[Any, tuple[Any, ...]]:
    """struct engine_config and the texts it points to."""
    data_path = ffi.new("char[]", str(config.data_path).encode())
    host = ffi.new("char[]", config.host.encode())
    native = ffi.new("struct engine_config *")
    native.data_path = data_path
    native.host = host
    native.port = config.port
    native.shards_count = config.shards
    native.shards_pinned = config.shards_pinned
    native.direct_io = config.direct_io
    native.cluster_id = _text(config.cluster_id, _ID_BYTES, "cluster_id")
    native.node_id = _text(config.node_id, _ID_BYTES, "node_id")
    native.admin_key_id = _text(config.admin_key_id, _KEY_ID_BYTES, "admin_key_id")
    native.admin_sha256 = list(config.admin_sha256)
    native.journal_bytes = config.journal_bytes
    native.extent_bytes = config.extent_bytes
    native.memory_bytes = config.memory_bytes
    native.metering_window_s = config.metering_window_s
    native.partitions_max = config.partitions_max
    for limit in fields(EngineLimits):
        setattr(native.limits, limit.name, getattr(config.limits, limit.name))
    return native, (native, data_path, host)
