"""Several workers on one queue: every change is handled, by one of them at a time."""

import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from sqlalchemy import text

from api.db.database import WORK_CHANNEL, Database
from api.reconcile.loop import Loop
from api.reconcile.notify import Listener
from api.reconcile.outcome import Converged, Observation, Outcome
from api.reconcile.queue import Claim, claim, enqueue, finish
from tests.support.builders.control_plane import Service
from tests.support.processes.platform import wait_until
from tests.support.processes.postgres import POSTGRESQL

KIND = "test"
OBJECTS = 200
WORKERS = 4
CHANGES = 30
SLOWER_MAX = 5.0
# A worker that does not have to wait is through in a fraction of it.
PATIENCE_SECONDS = 0.5


@dataclass
class Recorder:
    """A reconciler that only writes down what it saw, and what two saw at once."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    seen: list[tuple[str, int]] = field(default_factory=list)
    running: set[str] = field(default_factory=set)
    twice_at_once: set[str] = field(default_factory=set)

    def reconcile(self, item: Claim) -> Outcome:
        with self.lock:
            if item.object_id in self.running:
                self.twice_at_once.add(item.object_id)
            self.running.add(item.object_id)
        with self.lock:
            self.seen.append((item.object_id, item.requested_generation))
            self.running.discard(item.object_id)
        return Converged(Observation(item.requested_generation))

    def generation(self, object_id: str) -> int:
        return 1


@contextmanager
def working(service: Service, recorder: Recorder) -> Iterator[list[Loop]]:
    """Workers that look for work until the end of the block."""
    loops = [Loop(service.database, {KIND: recorder}) for _ in range(WORKERS)]
    stopped = threading.Event()

    def work(loop: Loop) -> None:
        while not stopped.is_set():
            seen = service.database.wakes
            if not loop.run_once([KIND]):
                service.database.wait_for_work(seen, 0.1)

    threads = [threading.Thread(target=work, args=(loop,)) for loop in loops]
    for thread in threads:
        thread.start()
    try:
        yield loops
    finally:
        stopped.set()
        service.database.wake_workers()
        for thread in threads:
            thread.join()


def test_four_workers_handle_two_hundred_objects_once_each(service: Service) -> None:
    recorder = Recorder()
    wished = [(f"o{number}", 1) for number in range(OBJECTS)]
    with service.database.write() as session:
        for object_id, generation in wished:
            enqueue(
                session,
                kind=KIND,
                object_id=object_id,
                org_id="org_0",
                generation=generation,
                now=service.clock(),
            )
    with working(service, recorder) as loops:
        wait_until(lambda: len(recorder.seen) >= OBJECTS, "every object was looked at")
    assert sorted(recorder.seen) == sorted(wished)
    assert not recorder.twice_at_once
    assert sum(loop.counters.leases_lost for loop in loops) == 0


def test_of_changes_while_workers_run_the_last_is_always_seen(service: Service) -> None:
    recorder = Recorder()
    last = {(f"o{number}", CHANGES) for number in range(5)}
    with working(service, recorder):
        for generation in range(1, CHANGES + 1):
            for object_id, _ in sorted(last):
                _enqueue(service, object_id, generation)
        wait_until(lambda: last <= set(recorder.seen), "the last change of each was seen")
    assert not recorder.twice_at_once


def test_a_change_beside_a_finish_is_due_at_once(service: Service) -> None:
    _enqueue(service, "a", 1)
    (item,) = _claim(service)

    def end() -> None:
        with service.database.write() as session:
            hour = timedelta(hours=1)
            assert finish(session, item, now=service.clock(), after=hour, attempts=0, error=None)

    worker = threading.Thread(target=end)
    with service.database.write() as session:
        enqueue(
            session,
            kind=KIND,
            object_id="a",
            org_id="org_0",
            generation=2,
            now=service.clock(),
        )
        worker.start()
        worker.join(PATIENCE_SECONDS)
        assert worker.is_alive()
    worker.join()
    (again,) = _claim(service)
    assert again.requested_generation == 2


def test_a_transaction_that_is_left_open_does_not_starve_the_queue(service: Service) -> None:
    seconds = []
    with service.database.read() as old:
        # Its snapshot keeps every dead version of the row that is changed and changed again.
        old.execute(text("SELECT count(*) FROM work"))
        for generation in range(1, 151):
            _enqueue(service, "a", generation)
            began = time.monotonic()
            (item,) = _claim(service)
            seconds.append(time.monotonic() - began)
            with service.database.write() as session:
                assert finish(
                    session,
                    item,
                    now=service.clock(),
                    after=timedelta(0),
                    attempts=0,
                    error=None,
                )
    # Against itself, for the machine may be busy: with every dead version read it grows and grows.
    assert statistics.median(seconds[-50:]) < SLOWER_MAX * statistics.median(seconds[:50])


@pytest.mark.parametrize("installation", [POSTGRESQL], indirect=True)
def test_a_change_of_another_process_wakes_workers_and_a_bare_notification_is_harmless(
    service: Service,
) -> None:
    ours = Database(service.settings.database.url, clock=service.clock)
    listener = Listener(ours)
    listener.start()
    try:
        # It wakes once as soon as it listens, for what was missed before.
        wait_until(lambda: ours.wakes > 0, "the listener is connected")
        seen = ours.wakes
        _enqueue(service, "a", 1)
        ours.wait_for_work(seen, 120)
        assert ours.wakes > seen
        seen = ours.wakes
        with service.database.write() as session:
            session.execute(text(f"NOTIFY {WORK_CHANNEL}"))
        ours.wait_for_work(seen, 120)
        assert ours.wakes > seen
        with ours.write() as session:
            (item,) = claim(session, kinds=[KIND], owner="me", now=service.clock())
        assert item.requested_generation == 1
    finally:
        listener.stop()
        ours.close()


def _enqueue(service: Service, object_id: str, generation: int) -> None:
    with service.database.write() as session:
        enqueue(
            session,
            kind=KIND,
            object_id=object_id,
            org_id="org_0",
            generation=generation,
            now=service.clock(),
        )


def _claim(service: Service) -> list[Claim]:
    with service.database.write() as session:
        return claim(session, kinds=[KIND], owner="me", now=service.clock())
