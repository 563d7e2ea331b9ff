"""Which nodes take connections and do not answer, so that only one call at a time waits for one.

    closed     calls pass; a call that times out opens it
    open       calls fail at once, until a delay is over
    half open  one short call is the probe, and the others still fail at once; an answer closes it

The delay is the deadline of the call that timed out, doubled with each probe that fails, never more
than DELAY_SECONDS_MAX, and spread by JITTER so that the processes of a service do not probe a node
together. Without this, each object of a silent node would hold a worker for a whole deadline, and
objects of other nodes would wait behind them. Refuses to know what is called.
"""

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

DELAY_SECONDS_MAX: Final = 5.0
JITTER: Final = 0.2


@dataclass(slots=True)
class _Circuit:
    """What is known of one address. ``open_until`` is None while it is closed; ``timeouts``: how
    many probes in a row got no answer, with the call that opened it."""

    answered_at: float = float("-inf")
    open_until: float | None = None
    opened_at: float = float("-inf")
    timeouts: int = 0


class CircuitBreaker:
    """The circuits of all addresses.

    :param clock: seconds that never jump.
    """

    def __init__(
        self, *, clock: Callable[[], float] = time.monotonic, dice: random.Random | None = None
    ) -> None:
        self.clock = clock
        self._dice = dice or random.Random()
        self._lock = threading.Lock()
        self._circuits: dict[str, _Circuit] = {}

    def allows(self, address: str, seconds: float) -> bool:
        """Whether to make a call. Of those that come when the delay is over one is the probe: the
        others fail for as long as it may take.

        A call that may take longer than the longest delay is never the probe, and fails until
        another call has closed the circuit. It would close the node off for its whole deadline, and
        say nothing at its end: a call that waits for work takes long at a healthy node too.

        :param seconds: the deadline of the call.
        """
        now = self.clock()
        with self._lock:
            circuit = self._circuits.get(address)
            if circuit is None or circuit.open_until is None:
                return True
            if now < circuit.open_until or seconds > DELAY_SECONDS_MAX:
                return False
            circuit.open_until = now + seconds
            circuit.opened_at = now
            return True

    def answered(self, address: str) -> None:
        """A call got an answer, if only a refusal."""
        with self._lock:
            circuit = self._circuits.setdefault(address, _Circuit())
            circuit.answered_at = self.clock()
            circuit.open_until = None
            circuit.timeouts = 0

    def timed_out(self, address: str, began: float, seconds: float) -> None:
        """A call that began then and had so many seconds got no answer. It changes nothing if
        another call was answered meanwhile, or if the circuit was opened meanwhile."""
        now = self.clock()
        with self._lock:
            circuit = self._circuits.setdefault(address, _Circuit())
            if began <= circuit.answered_at or began < circuit.opened_at:
                return
            circuit.timeouts += 1
            delay = min(DELAY_SECONDS_MAX, seconds * 2 ** min(circuit.timeouts - 1, 16))
            circuit.open_until = now + delay * (1 + JITTER * (2 * self._dice.random() - 1))
            circuit.opened_at = now

    def forget(self, address: str) -> None:
        """Another node, or none, is at the address from now on."""
        with self._lock:
            self._circuits.pop(address, None)
