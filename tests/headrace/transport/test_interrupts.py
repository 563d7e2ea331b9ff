"""Ctrl-C at any moment: whoever waits is interrupted, and nobody else is hurt by it."""

import contextlib
import random
import signal
import threading
from collections.abc import Callable, Iterator

import pytest

from headrace.messages import BatchAck
from headrace.producer.accumulator import Memory, Outcome
from headrace.transport.io_thread import IoThread, Mailbox

# A strike in a destructor is reported and dropped; work that never began is reported as such.
pytestmark = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning", "ignore:coroutine .* was never awaited"
)

STRIKES = 400
LATER = 2.0


class StrikeError(BaseException):
    """As KeyboardInterrupt, but of these tests."""


@pytest.fixture
def struck() -> Iterator[Callable[[Callable[[], object]], int]]:
    """Runs something again and again and interrupts it at random moments; returns how often."""
    random_seconds = random.Random(7)
    strikes = 0

    def strike(_signal: int, _frame: object) -> None:
        nonlocal strikes
        strikes += 1
        raise StrikeError

    def run(work: Callable[[], object]) -> int:
        while strikes < STRIKES:
            before = strikes
            # Python drops what is raised in a destructor: then the work ends by the count.
            with contextlib.suppress(StrikeError):
                signal.setitimer(signal.ITIMER_REAL, random_seconds.uniform(1e-5, 1e-3))
                while strikes == before:
                    work()
        return strikes

    before = signal.signal(signal.SIGALRM, strike)
    yield run
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def test_a_mailbox_goes_on_after_its_reader_was_interrupted(
    struck: Callable[[Callable[[], object]], int],
) -> None:
    box: Mailbox[int] = Mailbox()
    ended = threading.Event()

    def put() -> None:
        while not ended.is_set():
            box.put(1)
            box.clear()

    putting = threading.Thread(target=put, daemon=True)
    putting.start()
    assert struck(lambda: box.wait(0.001)) == STRIKES
    ended.set()
    putting.join(LATER)
    assert not putting.is_alive()
    box.put(2)
    assert box.take() is not None


def test_the_io_thread_goes_on_after_its_caller_was_interrupted(
    struck: Callable[[Callable[[], object]], int],
) -> None:
    async def nothing() -> int:
        return 7

    thread = IoThread()
    assert struck(lambda: thread.run(nothing())) == STRIKES
    assert thread.run(nothing(), LATER) == 7
    thread.stop()


def test_a_producer_s_memory_and_outcomes_survive_an_interrupted_caller(
    struck: Callable[[Callable[[], object]], int],
) -> None:
    memory = Memory(100)
    memory.take(100, None)
    outcome = Outcome()
    ended = threading.Event()

    def free() -> None:
        while not ended.is_set():
            memory.give_back(1)
            assert memory.try_take(1)

    freeing = threading.Thread(target=free, daemon=True)
    freeing.start()

    def both() -> None:
        with pytest.raises(Exception, match="bytes are waiting"):
            memory.take(50, 0.0005)
        with pytest.raises(Exception, match="not acknowledged"):
            outcome.wait(0.0005)

    assert struck(both) == STRIKES
    ended.set()
    freeing.join(LATER)
    assert not freeing.is_alive()
    settling = threading.Thread(
        target=outcome.resolve, args=(BatchAck("t", 0, 0, 1, 0, 1, 1, False),), daemon=True
    )
    settling.start()
    settling.join(LATER)
    assert outcome.done
