"""The desired to end: a signal may state it at any moment of the wait that it ends."""

import signal
import sys
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING

import pytest

from api.embedded.shutdown import SIGNALS, Stop

if TYPE_CHECKING:
    from _typeshed import TraceFunction

SHORT_SECONDS = 0.001
STUCK_SECONDS = 5.0


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    """Ours are put back; a wait that nothing ends is interrupted."""

    def stuck(*_: object) -> None:
        raise AssertionError("the wait did not end")

    before = {number: signal.getsignal(number) for number in (*SIGNALS, signal.SIGALRM)}
    signal.signal(signal.SIGALRM, stuck)
    signal.setitimer(signal.ITIMER_REAL, STUCK_SECONDS)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    for number, handler in before.items():
        signal.signal(number, handler)


def _waited(stop: Stop, seconds: float | None, strike_at: int) -> int:
    """Wait, with a SIGTERM before the step `strike_at` of it; the steps that there were."""
    steps = 0

    def trace(frame: FrameType, event: str, _: object) -> "TraceFunction":
        nonlocal steps
        frame.f_trace_opcodes = True
        if event == "opcode":
            steps += 1
            if steps == strike_at:
                sys.settrace(None)
                signal.raise_signal(signal.SIGTERM)
        return trace

    sys.settrace(trace)
    try:
        stop.wait(seconds)
    finally:
        sys.settrace(None)
    return steps


def test_a_signal_at_any_step_of_a_wait_ends_it() -> None:
    steps = _waited(Stop(), SHORT_SECONDS, 0)
    assert steps > 0
    for step in range(1, steps + 1):
        stop = Stop()
        stop.on_signals()
        _waited(stop, SHORT_SECONDS, step)
        assert stop.wait()
        stop.close()


def test_what_was_set_twice_is_set() -> None:
    stop = Stop()
    assert not stop.wait(SHORT_SECONDS)
    stop.set()
    stop.set()
    assert stop.is_set()
    assert stop.wait()
    stop.close()
