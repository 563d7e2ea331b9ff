"""Waits until an object has come to a state, without polling.

A commit that changes an object's status wakes its waiters: in the process itself on
SQLite, by LISTEN and NOTIFY on PostgreSQL. A notification may be lost, so the state is also read
every SAFETY_SECONDS. Refuses to know what is waited for.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from fastapi.concurrency import run_in_threadpool

from api.db.database import Database

SAFETY_SECONDS: Final = 5.0


async def wait_for_state(
    database: Database,
    object_id: str,
    is_reached: Callable[[], bool],
    seconds: float,
    *,
    safety_seconds: float = SAFETY_SECONDS,
) -> bool:
    """Whether the state was reached in time.

    :param is_reached: reads the state, in a thread.
    :param safety_seconds: how often to read it without a notification.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    with database.changes.watched(object_id) as changed:
        while True:
            # Before the read: what changes after it is a reason to read again.
            changed.clear()
            if await run_in_threadpool(is_reached):
                return True
            left = deadline - loop.time()
            if left <= 0:
                return False
            try:
                await asyncio.wait_for(changed.wait(), min(left, safety_seconds))
            except TimeoutError:
                continue
