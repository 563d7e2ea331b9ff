"""The process of one node: opens what the node needs, runs it until a signal, closes everything.

Owns signals, the data directory while it is open, and the exit code. Refuses to restart anything:
whatever failed ends the process, and the next start recovers from the journal.
"""

import asyncio
import logging
import signal
from collections.abc import Callable
from typing import Final

from dataplane.data_dir import NodeUnusable, open_engine, open_spools
from dataplane.node import Node, NodeFailed, Ready
from dataplane.settings import NodeSettings, read_admin_key

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)

log = logging.getLogger("dataplane.node")


async def run(settings: NodeSettings, announce: Callable[[Ready], None]) -> int:
    """Run one node until SIGTERM or SIGINT. Returns the exit code: 0 drained, 1 not.

    announce: called once, when the node serves. Raises NodeUnusable if it cannot start here.
    """
    admin_key = read_admin_key(settings.node.admin_key_file)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        loop.add_signal_handler(number, stop.set)
    engine = await asyncio.to_thread(open_engine, settings, admin_key)
    unusable: BaseException | None = None
    try:
        spools = await asyncio.to_thread(open_spools, settings.node.data_dir)
        try:
            async with asyncio.TaskGroup() as tasks:
                node = Node(settings, engine, spools, tasks, announce)
                drained = await node.serve(stop)
        finally:
            spools.usage.close()
            spools.retention.close()
    except* NodeUnusable as problems:
        # Raised below: Python 3.11.2, Debian 12's, groups what is raised in here.
        unusable = problems.exceptions[0]
    except* NodeFailed as failures:
        log.error("the node ends: %s", failures.exceptions[0])
        drained = False
    except* Exception:
        log.exception("the node failed")
        drained = False
    finally:
        await asyncio.to_thread(engine.close)
    if unusable is not None:
        raise unusable
    return 0 if drained else 1
