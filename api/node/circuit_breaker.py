"""Which nodes take connections and say nothing: nobody waits for one twice.

A call that got no answer in its time, while nobody else's did either, makes the node silent. For as
long again nobody asks it, and then one call at a time finds out; all others are told at once.
Without this, each object of that node would hold a worker for the whole deadline, and objects of
other nodes would wait behind them. Refuses to know what is asked.
"""

import threading
import time
from dataclasses import dataclass, field


@dataclass(slots=True)
class Silence:
    """What is known of each address.

    :param seconds: the deadline of an ordinary call.
    """

    seconds: float
    lock: threading.Lock = field(default_factory=threading.Lock)
    answered_at: dict[str, float] = field(default_factory=dict)
    until: dict[str, float] = field(default_factory=dict)

    def may_ask(self, address: str) -> bool:
        """Whether to call; of those who ask a silent node again, one does."""
        now = time.monotonic()
        with self.lock:
            until = self.until.get(address)
            if until is None:
                return True
            if now < until:
                return False
            # This call is the trial: the others need not wait for its end.
            self.until[address] = now + self.seconds
            return True

    def answered(self, address: str) -> None:
        """Something came back, if only a refusal."""
        with self.lock:
            self.answered_at[address] = time.monotonic()
            self.until.pop(address, None)

    def timed_out(self, address: str, began: float) -> None:
        """A call that began then (by the monotonic clock) has got no answer."""
        with self.lock:
            if self.answered_at.get(address, 0.0) < began:
                self.until[address] = time.monotonic() + self.seconds
