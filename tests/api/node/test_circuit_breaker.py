"""The circuit breaker by itself, over a clock that tests move."""

import random

from api.node.circuit_breaker import DELAY_SECONDS_MAX, JITTER, CircuitBreaker
from tests.support.builders.control_plane import Seconds

ADDRESS = "127.0.0.1:1"
DEADLINE = 1.0


def opened(clock: Seconds, *, seed: int = 0) -> CircuitBreaker:
    """A breaker that one call has opened."""
    breaker = CircuitBreaker(clock=clock, dice=random.Random(seed))
    assert breaker.allows(ADDRESS, DEADLINE)
    time_out(breaker, clock)
    return breaker


def time_out(breaker: CircuitBreaker, clock: Seconds) -> None:
    """A call that gets no answer in its time."""
    began = clock()
    clock.advance(DEADLINE)
    breaker.timed_out(ADDRESS, began, DEADLINE)


def test_a_call_that_times_out_opens_the_circuit_for_about_its_deadline() -> None:
    clock = Seconds()
    breaker = opened(clock)
    clock.advance(DEADLINE * (1 - JITTER) - 0.001)
    assert not breaker.allows(ADDRESS, DEADLINE)
    assert breaker.allows("127.0.0.1:2", DEADLINE), "nothing is known of other nodes"
    clock.advance(DEADLINE * 2 * JITTER + 0.002)
    assert breaker.allows(ADDRESS, DEADLINE)


def test_of_the_calls_after_the_delay_one_is_the_probe() -> None:
    clock = Seconds()
    breaker = opened(clock)
    clock.advance(2 * DEADLINE)
    assert [breaker.allows(ADDRESS, DEADLINE) for _ in range(3)] == [True, False, False]
    breaker.answered(ADDRESS)
    assert [breaker.allows(ADDRESS, DEADLINE) for _ in range(3)] == [True, True, True]


def test_a_probe_that_ends_without_a_result_is_followed_by_another() -> None:
    clock = Seconds()
    breaker = opened(clock)
    clock.advance(2 * DEADLINE)
    assert breaker.allows(ADDRESS, DEADLINE)
    clock.advance(DEADLINE)
    assert breaker.allows(ADDRESS, DEADLINE)


def test_a_call_that_may_take_longer_than_any_delay_is_never_the_probe() -> None:
    clock = Seconds()
    breaker = opened(clock)
    clock.advance(2 * DEADLINE)
    assert not breaker.allows(ADDRESS, DELAY_SECONDS_MAX + 0.1)
    assert breaker.allows(ADDRESS, DELAY_SECONDS_MAX), "the place of the probe is free"
    breaker.answered(ADDRESS)
    assert breaker.allows(ADDRESS, 10 * DELAY_SECONDS_MAX), "it passes while the circuit is closed"


def test_the_delay_doubles_with_each_failed_probe_and_is_bounded() -> None:
    clock = Seconds()
    breaker = opened(clock)
    delays = []
    for _ in range(8):
        began = clock()
        while not breaker.allows(ADDRESS, DEADLINE):
            clock.advance(0.01)
        delays.append(clock() - began)
        time_out(breaker, clock)
    assert delays[0] < delays[1] < delays[2]
    assert DELAY_SECONDS_MAX * (1 - JITTER) <= delays[-1] <= DELAY_SECONDS_MAX * (1 + JITTER) + 0.02


def test_delays_differ_so_that_processes_do_not_probe_together() -> None:
    found = set()
    for seed in range(10):
        clock = Seconds()
        breaker = opened(clock, seed=seed)
        while not breaker.allows(ADDRESS, DEADLINE):
            clock.advance(0.01)
        found.add(round(clock(), 2))
    assert len(found) > 5


def test_a_time_out_counts_for_nothing_if_another_call_was_answered_meanwhile() -> None:
    clock = Seconds()
    breaker = CircuitBreaker(clock=clock)
    began = clock()
    clock.advance(DEADLINE / 2)
    breaker.answered(ADDRESS)
    clock.advance(DEADLINE / 2)
    breaker.timed_out(ADDRESS, began, DEADLINE)
    assert breaker.allows(ADDRESS, DEADLINE)


def test_calls_that_were_under_way_when_it_opened_do_not_lengthen_the_delay() -> None:
    clock = Seconds()
    breaker = CircuitBreaker(clock=clock, dice=random.Random(0))
    began = clock()
    clock.advance(DEADLINE)
    for _ in range(20):
        breaker.timed_out(ADDRESS, began, DEADLINE)
        clock.advance(0.001)
    clock.advance(DEADLINE * (1 + JITTER))
    assert breaker.allows(ADDRESS, DEADLINE)


def test_an_address_that_is_forgotten_is_called_at_once() -> None:
    breaker = opened(Seconds())
    assert not breaker.allows(ADDRESS, DEADLINE)
    breaker.forget(ADDRESS)
    assert breaker.allows(ADDRESS, DEADLINE)
