"""A request to stop, made by a signal and waited for in the same thread.

`threading.Event` is not for that: a handler runs in the middle of the wait that it is to end, and
`set()` takes the lock which that wait may hold just then. Nothing would ever run again there. This
module refuses locks.
"""

import os
import select
import signal
from typing import Final

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


class Stop:
    """Set once and for ever; any number of threads may wait for it."""

    def __init__(self) -> None:
        self._set = False
        # Never read from: its content wakes every waiter, now and later.
        self._read, self._write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def on_signals(self) -> None:
        """SIGTERM and SIGINT set it from now on. Main thread only."""
        for number in SIGNALS:
            signal.signal(number, lambda *_: self.set())

    def set(self) -> None:
        """Harmless at any moment and any number of times."""
        if not self._set:
            self._set = True
            os.write(self._write, b"!")

    def is_set(self) -> bool:
        """Whether it was set."""
        return self._set

    def wait(self, seconds: float | None = None) -> bool:
        """Return when it is set, or after `seconds`; whether it is set."""
        if not self._set:
            poll = select.poll()
            poll.register(self._read, select.POLLIN)
            poll.poll(None if seconds is None else seconds * 1000)
        return self._set

    def close(self) -> None:
        """Closes the pipe. No thread may wait any more."""
        os.close(self._read)
        os.close(self._write)
