"""One thread waiting once, so that Ctrl-C can do no harm.

Ctrl-C may strike between any two instructions of the thread that waits. Inside `threading.Event`
or `threading.Condition`, and so inside `concurrent.futures.Future`, it can leave a lock held, and
the I/O thread would hang on that lock for ever. Here the waiter blocks on a plain lock that no
other thread acquires.
"""

import threading


class Waiter:
    """`wait` in one thread until another has called `wake`, once."""

    __slots__ = ("_woken",)

    def __init__(self) -> None:
        self._woken = threading.Lock()
        self._woken.acquire()

    def wake(self) -> None:
        """End the wait, begun or to come."""
        self._woken.release()

    def wait(self, timeout: float | None) -> bool:
        """Whether it was woken within `timeout` seconds; None waits for ever."""
        return self._woken.acquire(timeout=-1 if timeout is None else max(timeout, 0.0))
