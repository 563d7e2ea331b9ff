"""What a session of PostgreSQL is told, and that a reader cannot write."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Row, func, select, text
from sqlalchemy.exc import DBAPIError, OperationalError

from api.db.database import Bounds, Database, Meta
from api.db.tables import Base
from api.db.tables.audit import OutboxEvent
from api.settings import DatabaseSettings
from tests.support.builders.control_plane import Installation, Service
from tests.support.processes.postgres import POSTGRESQL


@pytest.fixture
def database(installation: Installation) -> Iterator[Database]:
    """Opened with bounds of its own."""
    database = Database(installation.url, Bounds(connections=2, statement_seconds=1))
    yield database
    database.close()


def test_nothing_of_a_test_is_left_to_the_next(
    service: Service, installation: Installation
) -> None:
    def rows() -> list[list[Row[tuple[object, ...]]]]:
        with service.database.read() as session:
            tables = Base.metadata.sorted_tables
            return [sorted(session.execute(select(each)), key=str) for each in tables]

    def last_event() -> int:
        service.topic("orders")
        service.settle()
        with service.database.read() as session:
            return session.scalars(select(func.max(OutboxEvent.sequence))).one()

    def put_back() -> None:
        service.database.close()
        installation.put_back()

    put_back()
    before = rows()
    last = last_event()
    assert rows() != before
    put_back()
    assert rows() == before
    assert last_event() == last


def test_a_reader_sees_one_snapshot_and_cannot_write(database: Database) -> None:
    with database.read() as session:
        before = session.get_one(Meta, "db_epoch").value
        with database.write() as writer:
            writer.get_one(Meta, "db_epoch").value = "2"
        session.expire_all()
        assert session.get_one(Meta, "db_epoch").value == before
    with pytest.raises(DBAPIError), database.read() as session:
        session.execute(text("DELETE FROM meta"))


def test_an_error_of_the_database_does_not_tell_the_values(database: Database) -> None:
    with pytest.raises(DBAPIError) as caught, database.read() as session:
        session.execute(text("DELETE FROM meta WHERE value = :value"), {"value": "canary"})
    assert "canary" not in str(caught.value)


def test_the_settings_are_the_bounds() -> None:
    settings = DatabaseSettings(connections=3, wait_seconds=4, statement_seconds=5)
    assert settings.bounds() == Bounds(3, 4, 5)


@pytest.mark.parametrize("installation", [POSTGRESQL], indirect=True)
def test_a_statement_that_takes_too_long_is_ended_by_the_server(database: Database) -> None:
    with pytest.raises(OperationalError, match="statement timeout"), database.write() as session:
        session.execute(text("SELECT pg_sleep(60)"))


@pytest.mark.parametrize("installation", [POSTGRESQL], indirect=True)
def test_options_of_the_address_are_kept_beside_ours(installation: Installation) -> None:
    database = Database(f"{installation.url}&options=-c%20work_mem%3D1MB", Bounds())
    with database.read() as session:
        shown = [
            session.scalar(text(f"SHOW {name}"))
            for name in ("work_mem", "statement_timeout", "idle_in_transaction_session_timeout")
        ]
    database.close()
    assert shown == ["1MB", "30s", "1min"]
