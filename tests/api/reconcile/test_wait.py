"""Requests that wait: woken by the commit they wait for, and without it by the safety read."""

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
from sqlalchemy import Connection, event, text

from api.db.database import Database
from api.reconcile.notify import Listener
from api.reconcile.wait import wait_for_state
from api.topics.service import is_ready
from tests.support.builders.control_plane import Service
from tests.support.processes.platform import wait_until
from tests.support.processes.postgres import POSTGRESQL

NEVER_SECONDS = 3600.0
PATIENCE_SECONDS = 120.0
WAITERS = 100


@dataclass
class Waiting:
    """Waits for topics in a process of its own: another database object than the workers'."""

    database: Database
    reads: int = 0
    looks: int = 0

    def until_ready(
        self, topic_id: str, safety_seconds: float = NEVER_SECONDS
    ) -> Coroutine[None, None, bool]:
        """Waits for the first generation of a topic."""

        def reached() -> bool:
            with self.database.read() as session:
                found = is_ready(session, topic_id, generation=1)
            self.looks += 1
            return found

        return wait_for_state(
            self.database, topic_id, reached, PATIENCE_SECONDS, safety_seconds=safety_seconds
        )

    async def has_read(self, count: int) -> None:
        """Returns when there were so many reads."""
        await asyncio.to_thread(
            wait_until, lambda: self.reads >= count, f"{count} reads", PATIENCE_SECONDS
        )


@pytest.fixture
def waiting(service: Service) -> Iterator[Waiting]:
    """Counts its reads of statuses."""
    database = Database(service.settings.database.url, clock=service.clock)
    found = Waiting(database)

    def see(_connection: Connection, _cursor: object, statement: str, *_: object) -> None:
        found.reads += "resource_status" in statement

    event.listen(database.reader, "before_cursor_execute", see)
    yield found
    database.close()


@contextmanager
def listening(database: Database) -> Iterator[None]:
    """Notifications reach the database object; a new connection wakes everyone once."""
    listener = Listener(database)
    listener.start()
    try:
        if not database.is_sqlite:
            wait_until(lambda: database.wakes > 0, "it listens", PATIENCE_SECONDS)
        yield
    finally:
        listener.stop()


def test_the_commit_of_a_worker_wakes_who_waits_for_it(service: Service, waiting: Waiting) -> None:
    topic = service.topic()
    # On SQLite who waits and who works are one process, and have one database object.
    own = Waiting(service.database) if service.database.is_sqlite else waiting

    async def wait() -> bool:
        task = asyncio.ensure_future(own.until_ready(topic["id"]))
        await asyncio.to_thread(
            wait_until, lambda: own.looks == 1, "it has looked and waits", PATIENCE_SECONDS
        )
        await asyncio.to_thread(service.settle)
        return await task

    with listening(own.database):
        assert asyncio.run(wait()), "nothing but the notification could wake it"
    assert len(own.database.changes) == 0


def test_without_a_notification_the_safety_read_finds_what_was_committed(
    service: Service, waiting: Waiting
) -> None:
    topic = service.topic()

    async def wait() -> bool:
        task = asyncio.ensure_future(waiting.until_ready(topic["id"], safety_seconds=0.01))
        await waiting.has_read(3)
        # The workers are in another process, and nobody listens.
        await asyncio.to_thread(service.settle)
        return await task

    assert asyncio.run(wait())


def test_a_hundred_waiters_read_once_when_they_are_woken_and_not_before(
    service: Service, waiting: Waiting
) -> None:
    topics = [service.topic(f"t{number}")["id"] for number in range(2)]

    async def wait() -> list[int]:
        tasks = [
            asyncio.ensure_future(waiting.until_ready(topics[number % 2]))
            for number in range(WAITERS)
        ]
        await waiting.has_read(WAITERS)
        reads = [waiting.reads]
        waiting.database.changes.publish([topics[0]])
        await waiting.has_read(WAITERS + WAITERS // 2)
        waiting.database.changes.publish(["tp_another"])
        reads.append(waiting.reads)
        waiting.database.changes.publish(topics)
        await waiting.has_read(2 * WAITERS + WAITERS // 2)
        reads.append(waiting.reads)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return [*reads, waiting.reads]

    half = WAITERS // 2
    assert asyncio.run(wait()) == [WAITERS, WAITERS + half, 2 * WAITERS + half, 2 * WAITERS + half]
    assert len(waiting.database.changes) == 0


@pytest.mark.parametrize("installation", [POSTGRESQL], indirect=True)
def test_a_listener_that_lost_its_connection_wakes_everyone_once_it_has_another(
    service: Service, waiting: Waiting
) -> None:
    topic = service.topic()

    async def wait() -> bool:
        task = asyncio.ensure_future(waiting.until_ready(topic["id"]))
        await waiting.has_read(1)
        await asyncio.to_thread(cut)
        await asyncio.to_thread(service.settle)
        return await task

    def cut() -> None:
        query = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN %'"
        with service.database.write() as session:
            assert session.execute(text(query)).all() == [(True,)], "one connection listens"

    with listening(waiting.database):
        assert asyncio.run(wait())
