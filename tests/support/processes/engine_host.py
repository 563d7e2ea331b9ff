"""A small real host for engine tests: a thread that answers what shards hand over.

Its metadata machine is the simplest there can be: a command is a table delta, its result is
``applied``, and a snapshot is all deltas end to end. Cold calls go to an echo service. Owns one
engine, from start to close.
"""

from __future__ import annotations

import hashlib
import select
import struct
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Final

from native.engine import Engine, EngineConfig, Frame
from tests.support.builders.seeds import CLUSTER_ID

NODE_ID: Final = "nd_01test"
WAIT_S: Final = 120.0
SEND_WINDOW_BYTES: Final = 256 * 1024

OPEN, MESSAGE, HALF_CLOSE, CREDIT, CANCELLED = 1, 2, 3, 4, 5
RESTORE, APPLY, READY, SNAPSHOT = 16, 17, 18, 19
REPLY, METER_CLOSE, STOPPED = 32, 33, 34
SEND_MESSAGE, SEND_CREDIT, SEND_STATUS = 64, 65, 66
SUBMIT, APPLIED, RESTORED, SNAPSHOT_IS = 80, 81, 82, 83
PUBLISH, GROUP_FENCE, METER_ACK, METER_FLUSH, DESCRIBE, SEAL = 96, 97, 98, 99, 100, 101
PURGE = 103
HOST_BEAT, CLOCK_CONFIRM = 112, 113

PRODUCE, CONSUME = 1, 2

PARTITION_ID: Final = struct.Struct("<QQII")
CALLER: Final = struct.Struct("<IIII16s")
_PURGE: Final = struct.Struct("<QQ")
_TOPIC: Final = struct.Struct("<HHI QQ IIII Q II qqqQ")
_PROJECT: Final = struct.Struct("<HHI II II")
_GRANT: Final = struct.Struct("<HHI 16s 32s IIII q")

ADMIN_SECRET: Final = "A" * 43
ADMIN_TOKEN: Final = f"hr_node_adminadmin_{ADMIN_SECRET}_000000"


def token(public_id: str, secret: str) -> str:
    """A well-formed token; the shard does not look at its check characters."""
    return f"hr_user_{public_id}_{secret}_000000"


def topic_row(
    number: int,
    *,
    revision: int = 1,
    organization: int = 1,
    project: int = 1,
    partitions: int = 1,
    message_bytes_max: int = 8 * 1024 * 1024,
    segment_bytes: int = 64 * 1024 * 1024,
    flags: int = 0,
    retention_ms: int = -1,
    retention_bytes: int = -1,
    policy: int = 1,
    name: str = "",
    gone: bool = False,
) -> bytes:
    """struct engine_row_topic and its name."""
    kind = 2 if gone else 1
    row = _TOPIC.pack(
        kind,
        _TOPIC.size + len(name),
        0,
        number,
        revision,
        organization,
        project,
        partitions,
        message_bytes_max,
        segment_bytes,
        flags,
        len(name),
        retention_ms,
        retention_bytes,
        0,
        policy,
    )
    return row + name.encode() + bytes(-len(name) % 8)


def project_row(number: int, name: str, *, organization: int = 1) -> bytes:
    """struct engine_row_project and its name."""
    size = _PROJECT.size + len(name)
    row = _PROJECT.pack(5, size, 0, organization, number, len(name), 0)
    return row + name.encode() + bytes(-len(name) % 8)


def grant_row(
    public_id: str,
    secret: str,
    *,
    principal: int = 16,
    organization: int = 1,
    project: int = 0,
    verbs: int = PRODUCE | CONSUME,
    expires_at_us: int = 0,
    gone: bool = False,
) -> bytes:
    """struct engine_row_grant."""
    return _GRANT.pack(
        4 if gone else 3,
        _GRANT.size,
        0,
        public_id.encode(),
        hashlib.sha256(secret.encode()).digest(),
        principal,
        organization,
        project,
        verbs,
        expires_at_us,
    )


LARGE_BATCHES = {"extent_bytes": 16 * 1024 * 1024}


def config(data_path: Path, **changes: object) -> EngineConfig:
    """A small engine: every start fills its journal with zeros, so it has the fewest and small
    extents. Batches of more than 3 MiB need ``**LARGE_BATCHES``."""
    values: dict[str, object] = {
        "data_path": data_path,
        "cluster_id": CLUSTER_ID,
        "node_id": NODE_ID,
        "admin_key_id": "adminadmin",
        "admin_sha256": hashlib.sha256(ADMIN_SECRET.encode()).digest(),
        "journal_bytes": 24 * 1024 * 1024,
        "extent_bytes": 4 * 1024 * 1024,
    }
    values.update(changes)
    return EngineConfig(**values)  # type: ignore[arg-type]


class Host:
    """Opens and starts an engine, serves it on a thread, and closes both."""

    def __init__(self, settings: EngineConfig) -> None:
        self.engine = Engine(settings)
        self.ready = threading.Event()
        self.beating = True
        self.closes: list[Frame] = []
        self.cancelled: list[tuple[int, int, int]] = []
        self.opened: list[tuple[tuple[int, int, int], str, int, Frame]] = []
        self.stopped: list[Frame] = []
        self.changed = threading.Condition()
        self.snapshots_asked: list[float] = []
        self.snapshots_empty = False
        self.apply_gate = threading.Event()
        self.apply_gate.set()
        self.applying = threading.Event()
        self._commands: list[bytes] = []
        self._paths: dict[tuple[int, int, int], str] = {}
        # By call: what waits for its client to read, None for the end; what it has not read.
        self._unsent: defaultdict[tuple[int, int, int], deque[bytes | None]] = defaultdict(deque)
        self._sent_unread: defaultdict[tuple[int, int, int], int] = defaultdict(int)
        self._futures: dict[int, Future[tuple[int, bytes]]] = {}
        self._cookie = 0
        self._ending = threading.Event()
        self.engine.start()
        self.port = self.engine.port
        self.address = f"127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._run, name="test-host")
        self._thread.start()

    def __enter__(self) -> Host:
        if not self.ready.wait(WAIT_S):
            self.close()
            raise TimeoutError("the engine did not get ready")
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self, *, timeout_ms: int = 5000) -> bool:
        """Stop, then join the host's thread. True if everything ended in time."""
        clean = self.engine.stop(timeout_ms)
        self._ending.set()
        self._thread.join()
        self.engine.close()
        return clean

    def request(self, kind: int, body: bytes, *, arg1: int = 0) -> tuple[int, bytes]:
        """(engine result, body of the REPLY)."""
        return self.begin(kind, body, arg1=arg1).result(WAIT_S)

    def begin(self, kind: int, body: bytes, *, arg1: int = 0) -> Future[tuple[int, bytes]]:
        """The same, not waited for."""
        future: Future[tuple[int, bytes]] = Future()
        with self.changed:
            self._cookie += 1
            cookie = self._cookie
            self._futures[cookie] = future
        self._send(Frame(kind, arg0=cookie, arg1=arg1, body=body))
        return future

    def purge(self, topic: int, revision: int, partition: int, log_start: int) -> int:
        """Move the beginning of a partition's log up to an offset. Returns the engine's result."""
        place = PARTITION_ID.pack(topic, revision, partition, 0)
        result, _ = self.request(PURGE, place + _PURGE.pack(log_start, 1))
        return result

    def submit(self, *rows: bytes) -> None:
        """Commit table rows through the metadata log and wait until every shard has them."""
        result, body = self.request(SUBMIT, b"".join(rows))
        assert (result, body) == (0, b"applied")

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait for what frames change."""
        with self.changed:
            assert self.changed.wait_for(condition, WAIT_S)

    def _send(self, *frames: Frame) -> None:
        left = list(frames)
        while left:
            taken = self.engine.send(left)
            left = left[taken:]
            if left:
                select.select([self.engine], [], [], 0.01)

    def _run(self) -> None:
        while not self._ending.is_set():
            select.select([self.engine], [], [], 0.02)
            if self.beating:
                self._send(Frame(HOST_BEAT))
            while frames := self.engine.receive():
                for frame in frames:
                    self._handle(frame)
            cancelled = self.engine.cancelled()
            with self.changed:
                self.cancelled += cancelled
                self.changed.notify_all()

    def _handle(self, frame: Frame) -> None:
        if frame.kind == RESTORE:
            self._commands = [frame.body] if frame.body else []
            self._send(Frame(RESTORED, arg0=frame.arg0, body=frame.body))
        elif frame.kind == APPLY:
            self.applying.set()
            assert self.apply_gate.wait(WAIT_S)
            self.applying.clear()
            self._commands.append(frame.body)
            result = b"applied"
            padded = result.ljust((len(result) + 7) // 8 * 8, b"\0")
            self._send(Frame(APPLIED, arg0=frame.arg0, arg1=len(result), body=padded + frame.body))
        elif frame.kind == SNAPSHOT:
            self.snapshots_asked.append(time.monotonic())
            snapshot = b"" if self.snapshots_empty else b"".join(self._commands)
            self._send(Frame(SNAPSHOT_IS, arg0=frame.arg0, body=snapshot))
        elif frame.kind == READY:
            self._send(Frame(HOST_BEAT))
            self.ready.set()
        elif frame.kind == REPLY:
            self._futures.pop(frame.arg0).set_result((frame.arg1, frame.body))
        elif frame.kind == METER_CLOSE:
            with self.changed:
                self.closes.append(frame)
                self.changed.notify_all()
        elif frame.kind == STOPPED:
            with self.changed:
                self.stopped.append(frame)
                self.changed.notify_all()
        else:
            self._call(frame)

    def _call(self, frame: Frame) -> None:
        """Echo: a message comes back as it came; HALF_CLOSE ends with OK. Never answers nothing."""
        call = frame[1:4]
        if frame.kind == OPEN:
            path = frame.body[CALLER.size :].decode()
            self._paths[call] = path
            with self.changed:
                self.opened.append((call, path, frame.arg0, frame))
                self.changed.notify_all()
            if path.endswith("/Refuse"):
                # Status{code=5, message="not here"}
                self._send(Frame(SEND_STATUS, *call, arg0=5, body=b"\x08\x05\x12\x08not here"))
            return
        path = self._paths.get(call, "")
        if path.endswith(("/Never", "/Refuse")):
            return
        if frame.kind == MESSAGE:
            self._unsent[call].append(frame.body)
        elif frame.kind == CREDIT:
            self._sent_unread[call] -= frame.arg0
        elif frame.kind == HALF_CLOSE:
            self._unsent[call].append(None)
        self._echo(call)

    def _echo(self, call: tuple[int, int, int]) -> None:
        """Send what waits, as fast as the client reads: what it does not take it may not add to."""
        unsent = self._unsent[call]
        while unsent and self._sent_unread[call] < SEND_WINDOW_BYTES:
            body = unsent.popleft()
            if body is None:
                self._send(Frame(SEND_STATUS, *call, arg0=0))
                return
            self._sent_unread[call] += len(body)
            self._send(
                Frame(SEND_CREDIT, *call, arg0=len(body)), Frame(SEND_MESSAGE, *call, body=body)
            )
