"""A node whose interpreter lock can be held on demand.

`gil_node.py FIFO --config FILE` is `python -m dataplane --config FILE`, but each byte that arrives
in the FIFO holds the lock for 500 ms. PyDLL calls do not release it, so no Python of the process
runs meanwhile; the shards must not notice.
"""

import ctypes
import sys
import threading

HOLD_US = 500_000


def hold_on_demand(path: str) -> None:
    """Wait for bytes; hold the lock once for each."""
    libc = ctypes.PyDLL(None)
    with open(path, "rb", buffering=0) as fifo:
        while fifo.read(1):
            libc.usleep(HOLD_US)


if __name__ == "__main__":
    threading.Thread(target=hold_on_demand, args=(sys.argv[1],), daemon=True).start()
    sys.argv = ["dataplane", *sys.argv[2:]]
    from dataplane.__main__ import main

    sys.exit(main())
