"""The I/O thread: work that nobody waits for is done all the same."""

import asyncio
import gc
import threading
import weakref

from headrace.transport.io_thread import IoThread

PATIENCE_S = 120.0


def test_abandoned_work_outlives_a_collection_of_garbage() -> None:
    io = IoThread()
    begun, done = threading.Event(), threading.Event()
    waits: list[weakref.ref[asyncio.Event]] = []

    async def work() -> None:
        own = asyncio.Event()
        waits.append(weakref.ref(own))
        io.loop.call_soon(begun.set)
        await own.wait()
        done.set()

    io.abandon(work())
    assert begun.wait(PATIENCE_S)
    gc.collect()
    own = waits[0]()
    assert own is not None, "the task was collected while it waited"
    io.loop.call_soon_threadsafe(own.set)
    assert done.wait(PATIENCE_S)
    io.stop()
