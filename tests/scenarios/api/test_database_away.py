"""PostgreSQL is away, read-only or slow (C1): a typed 503 that says when to come back, nothing half
made, and no restart afterwards."""

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from httpx2 import Response
from sqlalchemy import func, select
from sqlalchemy.exc import OperationalError

from api.db.database import Bounds, Database
from api.db.tables.audit import AuditEvent, OutboxEvent
from api.db.tables.operations import Operation
from api.db.tables.topics import Topic
from api.db.tables.work import ResourceStatus, Work
from tests.support.builders.control_plane import Service
from tests.support.processes.postgres import POSTGRESQL, USER, Postgres
from tests.support.proxies.database_proxy import DatabaseProxy

pytestmark = pytest.mark.parametrize("installation", [POSTGRESQL], indirect=True)

TABLES = (Topic, Operation, Work, ResourceStatus, AuditEvent, OutboxEvent)
ROUND_TRIP_SECONDS = 0.05
PATIENCE_SECONDS = 120.0
CALLERS = 12


@contextmanager
def stopped(postgres: Postgres) -> Iterator[None]:
    """The server is down inside the block."""
    postgres.stop()
    try:
        yield
    finally:
        postgres.start()


@contextmanager
def in_the_middle_of_a_pass(service: Service) -> Iterator[Future[int]]:
    """A worker whose command the node has applied and not yet answered, until the block ends."""
    reached, go_on = threading.Event(), threading.Event()

    def pause() -> None:
        service.node.on_apply = lambda: None
        reached.set()
        assert go_on.wait(PATIENCE_SECONDS)

    service.node.on_apply = pause
    with ThreadPoolExecutor(1) as pool:
        passing = pool.submit(service.loop.run_once)
        assert reached.wait(PATIENCE_SECONDS)
        try:
            yield passing
        finally:
            go_on.set()


def test_while_the_database_is_down_every_request_is_told_when_to_come_back(
    service: Service, postgres: Postgres
) -> None:
    topic = service.topic("orders")
    before = counts(service)
    with stopped(postgres):
        for response in (
            create(service, "refunds"),
            service.client.get(f"/v1/topics/{topic['id']}", headers=service.owner),
            service.client.get("/readyz"),
        ):
            refused(response)
        assert service.client.get("/healthz").status_code == 200
    assert counts(service) == before
    assert create(service, "refunds").status_code == 202
    assert service.client.get("/readyz").status_code == 200


def test_workers_outlive_the_database_and_go_on_where_they_were(
    service: Service, postgres: Postgres
) -> None:
    topic = service.topic("orders")
    with stopped(postgres), pytest.raises(OperationalError):
        service.loop.run_once()
    assert service.settle() > 0
    assert ready(service, topic["id"])


def test_a_restart_in_the_middle_of_a_pass_loses_no_lease_and_does_nothing_twice(
    service: Service, postgres: Postgres
) -> None:
    service.settle()
    topic = service.topic("orders")
    sent = len(service.node.applied)
    with in_the_middle_of_a_pass(service) as passing, stopped(postgres):
        pass
    assert passing.result() == 1
    assert service.loop.counters.leases_lost == 0
    assert len(service.node.applied) == sent + 1
    assert ready(service, topic["id"])


def test_a_pass_that_cannot_be_recorded_is_made_again_after_its_lease(
    service: Service, postgres: Postgres
) -> None:
    service.settle()
    topic = service.topic("orders")
    sent = len(service.node.applied)
    with in_the_middle_of_a_pass(service) as passing:
        postgres.stop()
    try:
        assert isinstance(passing.exception(), OperationalError)
    finally:
        postgres.start()
    assert service.settle() == 0
    service.clock.advance(31)
    service.settle()
    assert len(service.node.applied) == sent + 1
    assert ready(service, topic["id"])


def test_a_read_only_database_is_read_and_takes_no_changes(
    service: Service, postgres: Postgres
) -> None:
    topic = service.topic("orders")
    before = counts(service)
    with read_only(service, postgres):
        refused(create(service, "refunds"))
        assert service.get(f"/v1/topics/{topic['id']}")["name"] == "orders"
    assert counts(service) == before
    assert create(service, "refunds").status_code == 202


def test_behind_a_slow_database_every_answer_is_true_and_no_object_half_made(
    service: Service, postgres: Postgres
) -> None:
    service.settle()
    before = counts(service)
    with DatabaseProxy(postgres.socket) as proxy:
        slow = Database(
            f"postgresql://{USER}@127.0.0.1:{proxy.port}/test",
            Bounds(connections=2, wait_seconds=2),
            clock=service.clock,
        )
        service.client.app.state.database = slow  # type: ignore[attr-defined]
        assert create(service, "first").status_code == 202
        proxy.delay_seconds = ROUND_TRIP_SECONDS
        names = [f"slow-{number}" for number in range(CALLERS)]
        with ThreadPoolExecutor(CALLERS) as pool:
            answers = list(pool.map(lambda name: create(service, name), names))
        slow.close()
    service.client.app.state.database = service.database  # type: ignore[attr-defined]
    made = [name for name, answer in zip(names, answers, strict=True) if answer.status_code == 202]
    assert made
    for answer in answers:
        assert answer.status_code == 202 or refused(answer)
    found = {each["name"] for each in service.get("/v1/topics")["items"]}
    assert found == {"first", *made}
    assert counts(service) == [count + len(found) for count in before]


def test_a_connection_that_breaks_in_the_middle_leaves_the_next_request_alone(
    service: Service, postgres: Postgres
) -> None:
    with DatabaseProxy(postgres.socket) as proxy:
        near = Database(f"postgresql://{USER}@127.0.0.1:{proxy.port}/test", clock=service.clock)
        service.client.app.state.database = near  # type: ignore[attr-defined]
        assert create(service, "first").status_code == 202
        proxy.break_all()
        assert create(service, "second").status_code == 202
        near.close()
    service.client.app.state.database = service.database  # type: ignore[attr-defined]


def create(service: Service, name: str) -> Response:
    """The answer to one create."""
    return service.client.post("/v1/topics", json={"name": name}, headers=service.owner)


def refused(response: Response) -> bool:
    """It must be a refusal that teaches and tells nothing of the inside."""
    assert response.status_code == 503, response.text
    assert int(response.headers["Retry-After"]) > 0
    problem = response.json()
    assert (problem["code"], problem["retriable"]) == ("UNAVAILABLE", True)
    assert "Idempotency-Key" in problem["hint"]
    assert "psycopg" not in response.text
    return True


def counts(service: Service) -> list[int]:
    """How many rows there are of everything that a create makes."""
    with service.database.read() as session:
        return [session.scalar(select(func.count()).select_from(each)) or 0 for each in TABLES]


def ready(service: Service, topic_id: str) -> bool:
    """Whether a topic is as it was wished."""
    conditions = service.get(f"/v1/topics/{topic_id}")["status"]["conditions"]
    return ("Ready", "True") in {(each["type"], each["status"]) for each in conditions}


@contextmanager
def read_only(service: Service, postgres: Postgres) -> Iterator[None]:
    """Sessions take no changes inside the block, as after a failover or on a full disk."""
    postgres.execute(b"ALTER DATABASE test SET default_transaction_read_only = on")
    service.database.writer.dispose()
    try:
        yield
    finally:
        postgres.execute(b"ALTER DATABASE test RESET default_transaction_read_only")
        service.database.writer.dispose()
