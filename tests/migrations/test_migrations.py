"""Migrations go up, down and up again on both databases, with a row in every table, and end at what
the models say."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Connection,
    DateTime,
    Engine,
    Integer,
    LargeBinary,
    MetaData,
    Select,
    Table,
    create_engine,
    event,
    func,
    insert,
    inspect,
    select,
    update,
)

from api.db.database import Database
from api.db.schema import MIGRATIONS, SchemaError, alembic_config, check_schema, migrate
from api.db.tables import Base
from api.db.tables.audit import AuditEvent
from api.db.tables.operations import Operation
from api.db.tables.usage import UsageRow
from tests.support.processes.postgres import DATABASES, Postgres

# What the checks of the tables want; an organization is its own.
FIXED: Mapping[str, object] = {
    "role": "owner",
    "state": "QUEUED",
    "invoices.state": "DRAFT",
    "legal_holds.state": "RELEASED",
    "org_id": "org_1",
}
ORGANIZATION = "org_1"
REVISIONS = [
    script.revision for script in ScriptDirectory(str(MIGRATIONS)).walk_revisions("base", "head")
][::-1]


@pytest.fixture(params=DATABASES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database without any table."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/control.db"
        return
    postgres: Postgres = request.getfixturevalue("postgres")
    yield postgres.create("migrated")
    postgres.drop("migrated")


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    """Looks into the database."""
    engine = create_engine(url)
    yield engine
    engine.dispose()


def test_up_down_up_ends_where_up_did(url: str, engine: Engine) -> None:
    config = alembic_config(url)
    command.upgrade(config, "head")
    first = _shape(engine)
    command.downgrade(config, "base")
    assert inspect(engine).get_table_names() == ["alembic_version"]
    command.upgrade(config, "head")
    assert _shape(engine) == first


def test_a_row_in_every_table_goes_down_and_up_again_where_its_table_stays(
    url: str, engine: Engine
) -> None:
    config = alembic_config(url)
    command.upgrade(config, "head")
    _fill(engine)
    first = _shape(engine)
    for revision in REVISIONS[-2::-1]:
        command.downgrade(config, revision)
        assert set(_counts(engine).values()) == {1}, revision
    for revision in REVISIONS[1:]:
        command.upgrade(config, revision)
        _fill(engine)
        assert set(_counts(engine).values()) == {1}, revision
    assert _shape(engine) == first


def test_the_models_equal_the_migrated_schema(url: str, engine: Engine) -> None:
    migrate(url)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, Base.metadata) == []


def test_what_only_grows_is_read_in_the_order_of_an_index(tmp_path: Path) -> None:
    asked: Mapping[str, Sequence[Select[object]]] = {
        "org_id_id": (
            select(AuditEvent).filter_by(org_id="a").order_by(AuditEvent.id),
            select(Operation).filter_by(org_id="a").order_by(Operation.id.desc()),
        ),
        "target_id_org_id": (
            select(AuditEvent).filter_by(org_id="a", target_id="b").order_by(AuditEvent.id),
            select(Operation).filter_by(org_id="a", target_id="b").order_by(Operation.id),
            select(AuditEvent).filter_by(target_id="a"),
            select(Operation).filter_by(target_id="a"),
        ),
        "run_id_org_id": (select(UsageRow).filter_by(run_id="a", org_id="b", meter="c"),),
    }
    url = f"sqlite:///{tmp_path}/control.db"
    migrate(url)
    engine = create_engine(url)
    with engine.connect() as connection:
        for index, queries in asked.items():
            for query in queries:
                text = query.compile(engine, compile_kwargs={"literal_binds": True})
                (step,) = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}").all()
                assert f"_{index} (" in step[3], text
    engine.dispose()


def test_migrating_twice_changes_nothing(url: str, engine: Engine) -> None:
    migrate(url)
    before = _shape(engine)
    migrate(url)
    assert _shape(engine) == before


@pytest.mark.check
def test_a_runner_is_alone_and_bounded_for_every_revision(postgres: Postgres) -> None:
    url = postgres.create("alone")
    found: list[tuple[str, str, int]] = []

    @event.listens_for(Engine, "before_cursor_execute")
    def look(connection: Connection, _cursor: object, statement: str, *_rest: object) -> None:
        if "alembic_version" in statement and statement.startswith(("INSERT", "UPDATE")):
            waits = [
                connection.exec_driver_sql(f"SHOW {name}_timeout").scalar_one()
                for name in ("lock", "statement")
            ]
            locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted"
            found.append((*waits, connection.exec_driver_sql(locks).scalar_one()))

    try:
        migrate(url)
    finally:
        event.remove(Engine, "before_cursor_execute", look)
        postgres.drop("alone")
    assert found == [("4s", "5s", 1)] * len(REVISIONS)


def test_a_database_of_another_release_is_refused(url: str) -> None:
    command.upgrade(alembic_config(url), "0001")
    database = Database(url)
    with pytest.raises(SchemaError, match="0001"):
        check_schema(database)
    database.close()


def test_rows_of_the_release_before_are_kept_and_can_be_deleted(url: str, engine: Engine) -> None:
    config = alembic_config(url)
    command.upgrade(config, "0003")
    _fill(engine)
    command.upgrade(config, "0004")
    row = _row(engine, "topics")
    assert (row["name"], row["finalizers"]) == ("name", ["data-plane"])
    assert (row["deleted_at"], row["deletion_confirmed"], row["purged_at"]) == (None, False, None)
    command.downgrade(config, "0003")
    row = _row(engine, "topics")
    assert (row["name"], row["generation"]) == ("name", 1)


def test_going_back_drops_tombstones_and_refuses_while_something_goes(
    url: str, engine: Engine
) -> None:
    config = alembic_config(url)
    command.upgrade(config, "0003")
    _fill(engine)
    command.upgrade(config, "0004")
    _set(engine, "topics", "deleted_at")
    with pytest.raises(RuntimeError, match="1 topics are being deleted"):
        command.downgrade(config, "0003")
    assert _counts(engine)["topics"] == 1
    for table in ("topics", "streams", "projects"):
        _set(engine, table, "deleted_at", "purged_at")
    command.downgrade(config, "0003")
    counts = _counts(engine)
    for table in ("topics", "streams", "projects", "api_keys"):
        assert counts[table] == 0, table


def test_topics_that_are_there_get_a_lifecycle_and_the_demo_book_its_new_prices(
    url: str, engine: Engine
) -> None:
    config = alembic_config(url)
    command.upgrade(config, "0004")
    _fill(engine)
    book = next(table for table in _tables(engine) if table.name == "price_books")
    with engine.begin() as connection:
        connection.execute(
            insert(book).values({**_row(engine, "price_books"), "version": "demo-1"})
        )
    command.upgrade(config, "0007")
    span, topic = _row(engine, "topic_lifecycle"), _row(engine, "topics")
    assert (span["topic_id"], span["partitions"]) == (topic["id"], 1)
    assert (span["started_at"], span["ended_at"]) == (topic["created_at"], None)
    assert _counts(engine)["prices"] == 1 + 3
    command.downgrade(config, "0004")
    assert _counts(engine)["prices"] == 1


def _tables(engine: Engine) -> list[Table]:
    """Every table, parents first."""
    found = MetaData()
    found.reflect(engine)
    return [table for table in found.sorted_tables if table.name != "alembic_version"]


def _fill(engine: Engine) -> None:
    """A row into every table that has none."""
    for table in _tables(engine):
        with engine.begin() as connection:
            if connection.scalar(select(func.count()).select_from(table)) == 0:
                row = {column.name: _value(column) for column in table.columns}
                if table.name == "organizations":
                    row["id"] = ORGANIZATION
                connection.execute(insert(table).values(row))


def _value(column: Column[object]) -> object:
    """Of the column's type; the ids of a row's parents are those that were put into theirs."""
    for key in column.foreign_keys:
        return ORGANIZATION if key.column.table.name == "organizations" else _value(key.column)
    for name in (f"{column.table.name}.{column.name}", column.name):
        if name in FIXED:
            return FIXED[name]
    if column.nullable:
        return None
    kind = column.type
    if isinstance(kind, LargeBinary):
        return bytes(32)
    if isinstance(kind, DateTime):
        return datetime(2026, 3, 1, tzinfo=UTC)
    if isinstance(kind, JSON):
        return {}
    if isinstance(kind, Boolean):
        return False
    return 1 if isinstance(kind, Integer) else column.name[: getattr(kind, "length", None)]


def _set(engine: Engine, name: str, *columns: str) -> None:
    """Writes a time into columns of every row."""
    table = next(each for each in _tables(engine) if each.name == name)
    moments = {
        column: datetime(2026, 3, 1, tzinfo=UTC)
        if isinstance(table.columns[column].type, DateTime)
        else 1
        for column in columns
    }
    with engine.begin() as connection:
        connection.execute(update(table).values(moments))


def _row(engine: Engine, name: str) -> Mapping[str, object]:
    table = next(each for each in _tables(engine) if each.name == name)
    with engine.connect() as connection:
        return dict(connection.execute(select(table)).mappings().one())


def _counts(engine: Engine) -> dict[str, int]:
    """How many rows each table has."""
    with engine.connect() as connection:
        return {
            table.name: connection.scalar(select(func.count()).select_from(table)) or 0
            for table in _tables(engine)
        }


def _shape(engine: Engine) -> dict[str, list[str]]:
    inspector = inspect(engine)
    return {
        name: sorted(
            [
                *(f"{c['name']} {c['type']} {c['nullable']}" for c in inspector.get_columns(name)),
                *(f"index {index['name']}" for index in inspector.get_indexes(name)),
                *(f"unique {each['name']}" for each in inspector.get_unique_constraints(name)),
                *(f"check {each['name']}" for each in inspector.get_check_constraints(name)),
                *(f"foreign {each['name']}" for each in inspector.get_foreign_keys(name)),
            ]
        )
        for name in inspector.get_table_names()
    }
