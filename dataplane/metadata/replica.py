"""This node's replica of the metadata: the apply thread, and the door to submit commands.

Owns the one `Machine` of the process. Shard 0 sends committed ops; a thread of its own applies them
in order and hands each result back, so neither the event loop nor any shard ever waits for an
apply. Readers take the lock for as long as they look. Domain errors are results; any other
exception here is a defect of the machine, and the node stops on it rather than diverge.

The size of a snapshot is checked before it is sent. From three quarters of what fits on the node
warns by name. One that fits no more is not sent (empty bytes: the shard asks again) and is an error
in the log: the metadata serves on until its log is full, then refuses commands, and nothing else
is affected.
"""

import asyncio
import logging
import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from dataplane.engine.frames import EngineResult, Kind
from dataplane.engine.ring import BODY_BYTES_MAX, Ring
from dataplane.errors import RETRY_SAME_NODE, Refused
from dataplane.metadata.commands import accepted, decode_result, encode_command
from dataplane.metadata.machine import Applied, Machine
from dataplane.metadata.state import State
from dataplane.wire import node_pb2 as wire
from native.engine import Frame

SUBMIT_TIMEOUT_S: Final = 10.0
SUBMIT_ATTEMPTS_MAX: Final = 20
SUBMIT_RETRY_S: Final = 0.05

log = logging.getLogger("dataplane.replica")


class MetadataReplica:
    """Applies committed commands; submits new ones."""

    def __init__(
        self,
        ring: Ring,
        on_failure: Callable[[BaseException], None],
        *,
        snapshot_bytes_max: int = BODY_BYTES_MAX,
    ) -> None:
        self._ring = ring
        self._snapshot_bytes_max = snapshot_bytes_max
        self._on_failure = on_failure
        self._on_group: Callable[[int], None] = lambda _group: None
        self._on_closing: Callable[[int], None] = lambda _topic: None
        self._on_holding: Callable[[int], None] = lambda _topic: None
        self._machine = Machine()
        self._lock = threading.Lock()
        self._frames: queue.SimpleQueue[Frame | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._loop = asyncio.get_running_loop()
        self.recovered = asyncio.Event()
        self.ops_applied = 0
        self.snapshot_bytes = 0
        self.snapshots_refused = 0
        ring.handle(
            (
                Kind.METADATA_RESTORE,
                Kind.METADATA_APPLY,
                Kind.METADATA_READY,
                Kind.METADATA_SNAPSHOT,
            ),
            self._frames.put,
        )

    def handle_group_changes(self, handler: Callable[[int], None]) -> None:
        """`handler(group number)` runs on the loop after an op changed a group."""
        self._on_group = handler

    def handle_closing_topics(self, handler: Callable[[int], None]) -> None:
        """`handler(topic number)` runs on the loop after an op decided to delete a topic."""
        self._on_closing = handler

    def handle_held_topics(self, handler: Callable[[int], None]) -> None:
        """`handler(topic number)` runs on the loop after an op changed the holds of a topic."""
        self._on_holding = handler

    def start(self) -> None:
        """Start the apply thread."""
        self._thread = threading.Thread(target=self._run, name="metadata-apply", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the apply thread once it has answered what it was sent."""
        if self._thread is not None:
            self._frames.put(None)
            self._thread.join()
            self._thread = None

    @contextmanager
    def reading(self) -> Iterator[State]:
        """The state, held still.

        Look and leave: while it is held nothing is applied. Never await inside.
        """
        with self._lock:
            yield self._machine.state

    def op(self) -> int:
        """The last op applied."""
        with self._lock:
            return self._machine.state.op

    def warning(self) -> str:
        """What an operator must see to although the node serves; empty if nothing."""
        if self.snapshot_bytes <= self._snapshot_bytes_max * 3 // 4:
            return ""
        return (
            f"METADATA_SNAPSHOT_LARGE: {self.snapshot_bytes} bytes, "
            f"{self._snapshot_bytes_max} fit; see the runbook"
        )

    async def submit(
        self, command: wire.Command, *, timeout_s: float = SUBMIT_TIMEOUT_S
    ) -> wire.Result:
        """Put a command through the metadata log. Returns its result; raises the refusal it ended
        in.

        A full log is waited for, within the timeout.
        """
        frame = Frame(Kind.METADATA_SUBMIT, body=encode_command(command))
        for _ in range(SUBMIT_ATTEMPTS_MAX):
            reply = await self._ring.request(frame, timeout_s=timeout_s)
            if reply.result == EngineResult.OK:
                return accepted(decode_result(reply.body))
            if reply.result != EngineResult.BUSY:
                break
            await asyncio.sleep(SUBMIT_RETRY_S)
        raise Refused(
            "STOPPING" if reply.result == EngineResult.STOPPING else "RESOURCE_EXHAUSTED",
            f"the metadata log did not take the command: {reply.result.name}",
            hint="try again; if it stays so, look at /metrics and the node's log",
            kind=RETRY_SAME_NODE,
            retry_after_ms=500,
        )

    def _run(self) -> None:
        try:
            while (frame := self._frames.get()) is not None:
                self._answer(frame)
        except Exception as error:
            # Going on would let this replica differ from the others.
            log.exception("the metadata machine failed after op %d", self._machine.state.op)
            self._loop.call_soon_threadsafe(self._on_failure, error)

    def _answer(self, frame: Frame) -> None:
        if frame.kind == Kind.METADATA_RESTORE:
            with self._lock:
                tables = self._machine.restore(frame.body)
            self._reply(Frame(Kind.METADATA_RESTORED, arg0=frame.arg0, body=tables))
        elif frame.kind == Kind.METADATA_APPLY:
            with self._lock:
                applied = self._machine.apply(frame.arg0, frame.arg1, frame.body)
            self._reply(_applied(frame.arg0, applied))
            self._loop.call_soon_threadsafe(self._follow_up, applied)
        elif frame.kind == Kind.METADATA_SNAPSHOT:
            self._reply(
                Frame(Kind.METADATA_SNAPSHOT_IS, arg0=frame.arg0, body=self._snapshot(frame))
            )
        else:
            self._loop.call_soon_threadsafe(self.recovered.set)

    def _snapshot(self, frame: Frame) -> bytes:
        """The snapshot of this op; empty if it fits into no frame, which the shard never stores."""
        with self._lock:
            op = self._machine.state.op
            data = self._machine.snapshot()
        if op > frame.arg0:
            raise ValueError(f"a snapshot of op {frame.arg0} was asked for after op {op}")
        self.snapshot_bytes = len(data)
        if len(data) > self._snapshot_bytes_max:
            self.snapshots_refused += 1
            log.error("no snapshot of metadata op %d: %s", op, self.warning())
            return b""
        if self.warning():
            log.warning("%s", self.warning())
        return data

    def _reply(self, frame: Frame) -> None:
        """Answer from the apply thread. Raises ValueError, which ends the node by name, if the
        answer fits into no frame."""
        if len(frame.body) > BODY_BYTES_MAX:
            raise ValueError(
                f"{Kind(frame.kind).name} of metadata op {frame.arg0} has {len(frame.body)} "
                f"bytes; {BODY_BYTES_MAX} fit into a frame"
            )
        self._loop.call_soon_threadsafe(self._ring.post, frame)

    def _follow_up(self, applied: Applied) -> None:
        self.ops_applied += 1
        try:
            for group in applied.groups:
                self._on_group(group)
            if applied.closing:
                self._on_closing(applied.closing)
            if applied.holding:
                self._on_holding(applied.holding)
        except Exception as error:
            # Going on would leave a partition that never moves, or a topic that never goes.
            log.exception("what follows from a metadata op failed")
            self._on_failure(error)


def _applied(op: int, applied: Applied) -> Frame:
    padding = bytes(-len(applied.result) % 8)
    return Frame(
        Kind.METADATA_APPLIED,
        arg0=op,
        arg1=len(applied.result),
        body=applied.result + padding + applied.delta,
    )
