"""The queue: nobody is woken twice, nobody is forgotten, and a lease is worth something."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import event, select
from structlog.testing import capture_logs

from api.db.database import Database
from api.db.tables.work import Work
from api.reconcile.loop import Loop
from api.reconcile.outcome import Converged, Observation, Outcome
from api.reconcile.queue import LEASE, Claim, claim, enqueue, finish, holds, renew
from tests.support.builders.control_plane import Service
from tests.support.processes.platform import wait_until

KINDS = ("test",)
# Enough passes for a renewal to wait behind the end of one.
PASSES = 200


def test_many_changes_of_one_object_are_one_row_of_work(service: Service) -> None:
    for generation in range(1, 6):
        _enqueue(service, "a", generation)
    (row,) = _rows(service)
    assert row.requested_generation == 5


def test_a_claim_is_held_by_one_worker_until_its_lease_ends(service: Service) -> None:
    _enqueue(service, "a")
    (first,) = _claim(service)
    assert _claim(service) == []
    service.clock.advance(LEASE.total_seconds() + 1)
    (second,) = _claim(service)
    assert second.lease_token == first.lease_token + 1


def test_work_that_a_crash_left_is_claimed_again_after_its_lease(service: Service) -> None:
    _enqueue(service, "a")
    _claim(service)
    service.clock.advance(LEASE.total_seconds() - 1)
    assert _claim(service) == []
    service.clock.advance(2)
    assert len(_claim(service)) == 1


def test_a_renewed_lease_lasts(service: Service) -> None:
    _enqueue(service, "a")
    (item,) = _claim(service)
    for _ in range(5):
        service.clock.advance(20)
        with service.database.write() as session:
            assert renew(session, item, service.clock())
    assert _claim(service) == []


def test_a_finish_after_the_lease_was_lost_changes_nothing(service: Service) -> None:
    _enqueue(service, "a")
    (first,) = _claim(service)
    service.clock.advance(60)
    (second,) = _claim(service)
    assert not _finish(service, first)
    (row,) = _rows(service)
    assert row.lease_token == second.lease_token
    assert row.lease_owner is not None
    assert _finish(service, second)


def test_a_finished_claim_is_renewed_for_nobody(service: Service) -> None:
    for name in "abcd":
        _enqueue(service, name)
    finished = [_claim(service)[0] for _ in range(3)]
    for item in finished:
        assert _finish(service, item, timedelta(hours=1))
    assert [_renew(service, item) for item in finished] == [False] * 3
    assert {(row.lease_owner, row.lease_until) for row in _rows(service)} == {(None, None)}
    assert _claim(service, in_flight_max=1)[0].object_id == "d"


def test_a_finished_claim_holds_nothing_and_ends_nothing_twice(service: Service) -> None:
    _enqueue(service, "a")
    (item,) = _claim(service)
    assert _finish(service, item)
    assert not _holds(service, item)
    assert not _finish(service, item, timedelta(hours=1))
    assert len(_claim(service)) == 1


def test_a_claim_of_before_says_nothing_about_a_later_one_of_the_same_worker(
    service: Service,
) -> None:
    _enqueue(service, "a")
    (first,) = _claim(service)
    assert _finish(service, first)
    (second,) = _claim(service)
    assert (first.lease_owner, second.lease_owner) == ("me", "me")
    service.clock.advance(20)
    assert not _renew(service, first)
    assert not _holds(service, first)
    assert not _finish(service, first)
    service.clock.advance(11)
    assert _claim(service)[0].lease_token == second.lease_token + 1


def test_a_claim_on_a_row_that_was_removed_is_none_on_the_next_row_of_the_object(
    service: Service,
) -> None:
    _enqueue(service, "a")
    (first,) = _claim(service)
    assert _finish(service, first, final=True)
    assert _rows(service) == []
    _enqueue(service, "a")
    (second,) = _claim(service, owner="another")
    assert second.lease_token == first.lease_token, "its tokens begin anew"
    assert not _renew(service, first)
    assert not _holds(service, first)
    assert not _finish(service, first, final=True)
    assert _holds(service, second)


def test_what_changed_during_the_last_pass_stays_in_the_queue(service: Service) -> None:
    _enqueue(service, "a")
    (item,) = _claim(service)
    _enqueue(service, "a", 2)
    assert _finish(service, item, timedelta(hours=1), final=True)
    assert _claim(service)[0].requested_generation == 2


def test_a_lease_whose_time_is_over_is_lost_though_nobody_took_it(service: Service) -> None:
    _enqueue(service, "a")
    (item,) = _claim(service)
    service.clock.advance(LEASE.total_seconds())
    assert not _renew(service, item)
    assert not _holds(service, item)
    assert not _finish(service, item, timedelta(hours=1))
    assert len(_claim(service)) == 1


def test_passes_that_end_beside_the_renewer_leave_no_lease_and_no_warning(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.reconcile.loop.RENEW_SECONDS", 0.0)

    class Quick:
        def reconcile(self, item: Claim) -> Outcome:
            return Converged(Observation(1))

        def generation(self, object_id: str) -> int:
            return 1

    for number in range(PASSES):
        _enqueue(service, f"o{number}")
    loop = Loop(service.database, {"test": Quick()}, pools=((KINDS, 2),))
    with capture_logs() as logs:
        loop.start()
        try:
            wait_until(lambda: loop.counters.passes >= PASSES, "every object was looked at")
        finally:
            loop.stop()
    assert {(row.lease_owner, row.lease_until) for row in _rows(service)} == {(None, None)}
    assert [each["event"] for each in logs] == []
    assert loop.counters.leases_lost == 0


def test_a_change_during_the_work_makes_the_object_due_at_once(service: Service) -> None:
    _enqueue(service, "a")
    (item,) = _claim(service)
    _enqueue(service, "a", 2)
    assert _claim(service) == []
    assert _finish(service, item, after=timedelta(hours=1))
    (again,) = _claim(service)
    assert again.requested_generation == 2


def test_users_come_before_the_background(service: Service) -> None:
    _enqueue(service, "a", priority=0)
    service.clock.advance(1)
    _enqueue(service, "b", priority=10)
    assert [_claim(service)[0].object_id for _ in range(2)] == ["b", "a"]


def test_eight_workers_with_connections_of_their_own_claim_and_insert_without_an_error(
    service: Service,
) -> None:
    for number in range(20):
        _enqueue(service, f"first-{number}")

    def work(thread: int) -> list[str]:
        # As a process of its own would: threads of one share SQLite's only writer.
        database = Database(service.settings.database.url, clock=service.clock)
        if database.is_sqlite:
            event.listen(database.writer, "connect", wait_in_turn)
        own = replace(service, database=database)
        done = []
        for number in range(10):
            _enqueue(own, f"more-{thread}-{number}")
            for item in _claim(own):
                done.append(item.object_id)
                assert _finish(own, item, after=timedelta(hours=1))
        database.close()
        return done

    with ThreadPoolExecutor(8) as pool:
        done = [object_id for each in pool.map(work, range(8)) for object_id in each]
    assert len(done) == len(set(done)) == 80


def wait_in_turn(connection: sqlite3.Connection, _record: object) -> None:
    """SQLite lets those who wait for its lock try again at random: one of eight may have no luck
    for a long time. Nor does anything here wait for the disk, as in the other tests.
    """
    connection.execute("PRAGMA busy_timeout = 300000")
    connection.execute("PRAGMA synchronous = OFF")


def test_an_organization_with_much_to_do_leaves_a_worker_to_the_others(service: Service) -> None:
    for name in "abc":
        _enqueue(service, name, priority=90)
    _enqueue(service, "z", org_id="org_1")
    claimed = [_claim(service, in_flight_max=2)[0] for _ in range(3)]
    assert [item.object_id for item in claimed] == ["a", "b", "z"]
    assert _claim(service, in_flight_max=2) == []
    assert _finish(service, claimed[0], timedelta(hours=1))
    assert _claim(service, in_flight_max=2)[0].object_id == "c"


def _enqueue(
    service: Service,
    object_id: str,
    generation: int = 1,
    priority: int = 10,
    org_id: str = "org_0",
) -> None:
    with service.database.write() as session:
        enqueue(
            session,
            kind="test",
            object_id=object_id,
            org_id=org_id,
            generation=generation,
            now=service.clock(),
            priority=priority,
        )


def _claim(service: Service, in_flight_max: int | None = None, owner: str = "me") -> list[Claim]:
    with service.database.write() as session:
        now = service.clock()
        return claim(session, kinds=KINDS, owner=owner, now=now, in_flight_max=in_flight_max)


def _renew(service: Service, item: Claim) -> bool:
    with service.database.write() as session:
        return renew(session, item, service.clock())


def _holds(service: Service, item: Claim) -> bool:
    with service.database.write() as session:
        return holds(session, item, service.clock())


def _finish(
    service: Service, item: Claim, after: timedelta = timedelta(0), *, final: bool = False
) -> bool:
    with service.database.write() as session:
        return finish(
            session, item, now=service.clock(), after=after, attempts=0, error=None, final=final
        )


def _rows(service: Service) -> list[Work]:
    with service.database.read() as session:
        return list(session.scalars(select(Work).where(Work.kind == "test")))
