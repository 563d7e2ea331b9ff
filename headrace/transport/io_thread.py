"""The one I/O thread of a process, and how the sync and the async client use it.

All network work of all clients runs on one event loop in one daemon thread. So a handler that
computes for half an hour never delays a heartbeat, constructors need no running loop, the sync
client needs no loop at all, and an asyncio program keeps its own loop free of transport work: its
awaits are woken by `call_soon_threadsafe`, once per batch.

    caller thread or loop --- submit(coroutine) ---> I/O loop: channels, streams, heartbeats
                          <-- Future / Mailbox -----

After a fork the child has no such thread and starts its own. Clients of the parent refuse to work
there; and once the parent has opened a channel, so does connecting at all, since gRPC hangs then.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import contextlib
import logging
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from typing import Generic, Protocol, TypeVar

from headrace.errors import Closed, DeadlineExceeded, HeadraceError
from headrace.transport.waiter import Waiter

logger = logging.getLogger("headrace")
waiting = logging.getLogger("headrace.waiting")
"""Says at INFO that a call waits for an answer; the command line shows it."""

EXIT_SECONDS = 5.0
SILENCE_SECONDS = 3.0

T = TypeVar("T")


class _Started(Generic[T]):
    """Work that a thread has given to the loop and blocks for."""

    def __init__(self, work: Coroutine[object, None, T]) -> None:
        self._work = work
        self._task: asyncio.Task[T] | None = None
        self._cancelled = False
        self._done = Waiter()

    def begin(self) -> None:
        """On the loop."""
        if self._cancelled:
            self._work.close()
            return
        self._task = asyncio.get_running_loop().create_task(self._work)
        self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[T]) -> None:
        seen(task)
        self._done.wake()

    def cancel(self) -> None:
        """On the loop: the caller does not wait any more."""
        self._cancelled = True
        if self._task is not None:
            self._task.cancel()

    def drop(self) -> None:
        """The loop has ended and will not begin it."""
        self._work.close()

    def wait(self, timeout: float | None) -> bool:
        """Whether it ended within `timeout` seconds."""
        return self._done.wait(timeout)

    def result(self) -> T:
        """What it returned or raised; Closed if the client ended it."""
        assert self._task is not None
        if self._task.cancelled():
            raise _closed()
        return self._task.result()


def _closed() -> Closed:
    """The error of a call that a close() in another thread or task has ended."""
    return Closed("The client was closed while this call waited", hint="Connect again.")


class IoThread:
    """A thread with an event loop that other threads give work to."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._abandoned: set[asyncio.Task[object]] = set()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="headrace-io", daemon=True)
        self._thread.start()
        self._ready.wait()

    def _serve(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.call_soon(self._ready.set)
        self.loop.run_forever()
        self.loop.run_until_complete(self._end_tasks())

    async def _end_tasks(self) -> None:
        """End what gRPC still has under way; else it complains when the loop is collected."""
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def submit(self, work: Coroutine[object, None, T]) -> concurrent.futures.Future[T]:
        """Start `work` on the loop."""
        self._refuse_own_thread(work)
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def _refuse_own_thread(self, work: Coroutine[object, None, object]) -> None:
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError(
                "The synchronous client was called from a callback of the I/O thread"
            )

    def run(self, work: Coroutine[object, None, T], timeout: float | None = None) -> T:
        """Run `work` and block until it ends; Ctrl-C and the timeout cancel it."""
        self._refuse_own_thread(work)
        started: _Started[T] = _Started(work)
        if self.loop.is_closed():
            started.drop()
            raise Closed("The I/O thread of the client has ended", hint="Connect again.")
        ended = False
        try:
            self.loop.call_soon_threadsafe(started.begin)
            ended = started.wait(timeout)
        finally:
            if not ended:
                self.loop.call_soon_threadsafe(started.cancel)
        if not ended:
            raise DeadlineExceeded(f"No answer within {timeout} s")
        return started.result()

    async def call(self, work: Coroutine[object, None, T], timeout: float | None = None) -> T:
        """Run `work` on the I/O loop and await it from the caller's loop; cancelling cancels
        both. Closed if the client ended it."""
        future = asyncio.wrap_future(self.submit(work))
        try:
            return await asyncio.wait_for(future, timeout)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if future.cancelled() and task is not None and not task.cancelling():
                raise _closed() from None
            raise
        except TimeoutError:
            raise DeadlineExceeded(f"No answer within {timeout} s") from None

    def abandon(self, work: Coroutine[object, None, object]) -> None:
        """Start `work` without a waiter; dropped when the loop has ended. Safe in a destructor."""
        try:
            self.loop.call_soon_threadsafe(self._adopt, work)
        except RuntimeError:
            work.close()

    def _adopt(self, work: Coroutine[object, None, object]) -> None:
        # The loop alone does not keep a task that waits from being collected.
        task = self.loop.create_task(work)
        self._abandoned.add(task)
        task.add_done_callback(self._abandoned.discard)

    def stop(self) -> None:
        """End the loop and the thread."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(timeout=5)
        if not self._thread.is_alive():
            self.loop.close()

    def orphan(self) -> None:
        """In a forked child, where the thread does not exist: its tasks never end, in silence."""
        self.loop.set_exception_handler(lambda _loop, _context: None)


class ClosesInExit(Protocol):
    """What holds unsent records when a program ends."""

    def close_in_exit(self, timeout: float) -> None:
        """Flush and close within `timeout` seconds."""


@contextlib.contextmanager
def patient(who: str, timeout: float) -> Iterator[None]:
    """Around a call of `timeout` seconds to `who` on the I/O loop: says after a while that it still
    waits, and until when."""

    def say() -> None:
        until = time.strftime("%H:%M:%S", time.localtime(began + timeout))
        waiting.info("no answer from %s yet, retrying until %s", who, until)

    began = time.time()
    timer = asyncio.get_running_loop().call_later(SILENCE_SECONDS, say)
    try:
        yield
    finally:
        timer.cancel()


_open: weakref.WeakSet[ClosesInExit] = weakref.WeakSet()


class _Shared:
    """Holds the process's I/O thread; a fork forgets it."""

    def __init__(self) -> None:
        self.thread: IoThread | None = None
        self.lock = threading.Lock()
        self.transport_used = False
        self.transport_dead = False

    def forget(self) -> None:
        if self.thread is not None:
            self.thread.orphan()
        self.thread = None
        # gRPC's own threads are gone in the child and it cannot start them again: a call would
        # hang for ever.
        self.transport_dead = self.transport_used
        self.lock = threading.Lock()
        # The parent flushes its own clients; here their thread does not exist.
        _open.clear()


_shared = _Shared()
os.register_at_fork(after_in_child=_shared.forget)


def io_thread() -> IoThread:
    """The process's I/O thread, started at first use."""
    if _shared.transport_dead:
        raise Closed(
            "This process was forked from a connected process, which gRPC does not support",
            hint="Connect in the child only, or start children with spawn.",
        )
    with _shared.lock:
        if _shared.thread is None:
            _shared.thread = IoThread()
        return _shared.thread


def note_transport_used() -> None:
    """A channel was opened: forks of this process cannot connect any more."""
    _shared.transport_used = True


def stop_io_thread() -> None:
    """End the I/O thread; called at exit, after the clients were closed."""
    with _shared.lock:
        thread, _shared.thread = _shared.thread, None
    if thread is not None:
        thread.stop()


def close_at_exit(client: ClosesInExit) -> None:
    """Give `client` a few seconds at exit if it is still open."""
    _open.add(client)


@atexit.register
def _close_all() -> None:
    for client in list(_open):
        # At interpreter exit no caller gets the error; a log line names what was lost.
        try:
            client.close_in_exit(EXIT_SECONDS)
        except HeadraceError as error:
            logger.error("at exit: %s", error)
    stop_io_thread()


def seen(task: asyncio.Task[T]) -> None:
    """For add_done_callback: its error is no news, whether or not somebody still waits for it."""
    if not task.cancelled():
        task.exception()


def watch(task: asyncio.Task[None], failed: Callable[[BaseException], None]) -> None:
    """Call `failed` if the task ends by an unexpected error: silence would look like waiting."""

    def look(done: asyncio.Task[None]) -> None:
        error = None if done.cancelled() else done.exception()
        if error is not None:
            failed(error)

    task.add_done_callback(look)


class Mailbox(Generic[T]):
    """What the I/O thread hands to one reader, sync or async. Unbounded: the sender bounds what
    it puts.

    After `close(error)` a reader first gets what is left, then the error, or the end of the
    iteration. Ctrl-C may strike a reader anywhere and leaves the mailbox usable: its lock is a
    plain one, which a `with` cannot leave held.
    """

    def __init__(self) -> None:
        self._items: deque[T] = deque()
        self._changed = threading.Lock()
        self._closed = False
        self._error: BaseException | None = None
        self._wakers: list[Callable[[], None]] = []

    def put(self, item: T) -> None:
        """Add one item; ignored after close."""
        with self._changed:
            if self._closed:
                return
            self._items.append(item)
            self._wake()

    def close(self, error: BaseException | None = None) -> None:
        """No more items will come."""
        with self._changed:
            if self._closed:
                return
            self._closed, self._error = True, error
            self._wake()

    def clear(self) -> None:
        """Drop what was not taken."""
        with self._changed:
            self._items.clear()

    def poke(self) -> None:
        """Wake waiting readers although nothing was added; they get None."""
        with self._changed:
            self._wake()

    def _wake(self) -> None:
        wakers, self._wakers = self._wakers, []
        for waker in wakers:
            waker()

    def take(self) -> T | None:
        """The next item, or None when there is none yet. Raises StopIteration's cause through
        `ended`."""
        with self._changed:
            return self._items.popleft() if self._items else None

    @property
    def ended(self) -> bool:
        """Closed and empty. Raises the error that it was closed with."""
        with self._changed:
            if self._items or not self._closed:
                return False
            if self._error is not None:
                raise self._error
            return True

    def _listen(self, waker: Callable[[], None]) -> bool:
        """Have `waker` called at the next change, once; False if there is no need to wait."""
        with self._changed:
            if self._items or self._closed:
                return False
            self._wakers.append(waker)
            return True

    def _forget(self, waker: Callable[[], None]) -> None:
        with self._changed:
            if waker in self._wakers:
                self._wakers.remove(waker)

    def wait(self, timeout: float | None) -> T | None:
        """Block for the next item; None after `timeout` seconds, a poke, or the end."""
        arrived = Waiter()
        try:
            if self._listen(arrived.wake):
                arrived.wait(timeout)
        finally:
            self._forget(arrived.wake)
        return self.take()

    async def wait_async(self, timeout: float | None) -> T | None:
        """Like `wait`, for the caller's event loop."""
        loop = asyncio.get_running_loop()
        arrived = asyncio.Event()

        def waker() -> None:
            loop.call_soon_threadsafe(arrived.set)

        try:
            if self._listen(waker):
                await asyncio.wait_for(arrived.wait(), timeout)
        except TimeoutError:
            pass
        finally:
            self._forget(waker)
        return self.take()


class OwnerProcess:
    """Refuses use in a forked child."""

    def __init__(self) -> None:
        self._pid = os.getpid()

    @property
    def foreign(self) -> bool:
        """This is a fork of the process that made it."""
        return os.getpid() != self._pid

    def check(self, what: str) -> None:
        """Raise Closed when this is another process than the one that made `what`."""
        if self.foreign:
            raise Closed(
                f"This {what} was created before a fork",
                hint="Call headrace.connect() in the child.",
            )
