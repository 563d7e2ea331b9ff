"""Migrations go up, down and up again with nothing left behind, and end at what the models say."""

from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine, inspect, text

from api.database import Database
from api.schema import SchemaError, alembic_config, check_schema, migrate
from api.tables import Base


def test_up_down_up_ends_where_up_did(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/control.db"
    config = alembic_config(url)
    command.upgrade(config, "head")
    engine = create_engine(url)
    first = _shape(url)
    command.downgrade(config, "base")
    assert inspect(engine).get_table_names() == ["alembic_version"]
    command.upgrade(config, "head")
    assert _shape(url) == first
    engine.dispose()


def test_the_models_equal_the_migrated_schema(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/control.db"
    migrate(url)
    engine = create_engine(url)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, Base.metadata) == []
    engine.dispose()


def test_migrating_twice_changes_nothing(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/control.db"
    migrate(url)
    before = _shape(url)
    migrate(url)
    assert _shape(url) == before


def test_a_database_of_another_release_is_refused(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/control.db"
    command.upgrade(alembic_config(url), "0001")
    database = Database(url)
    with pytest.raises(SchemaError, match="0001"):
        check_schema(database)
    database.close()


def test_rows_of_the_release_before_are_kept_and_can_be_deleted(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/control.db"
    command.upgrade(alembic_config(url), "0003")
    _put_topic(url)
    command.upgrade(alembic_config(url), "0004")
    found = "SELECT name, finalizers, deleted_at, deletion_confirmed, purged_at FROM topics"
    assert _run(url, found) == [("orders", '["data-plane"]', None, 0, None)]
    command.downgrade(alembic_config(url), "0003")
    assert _run(url, "SELECT name, generation FROM topics") == [("orders", 1)]


def test_going_back_drops_tombstones_and_refuses_while_something_goes(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/control.db"
    config = alembic_config(url)
    command.upgrade(config, "0003")
    _put_topic(url)
    command.upgrade(config, "0004")
    _run(url, "UPDATE topics SET deleted_at = 1")
    with pytest.raises(RuntimeError, match="1 topics are being deleted"):
        command.downgrade(config, "0003")
    assert _run(url, "SELECT count(*) FROM topics") == [(1,)]
    for table in ("topics", "streams", "projects"):
        _run(url, f"UPDATE {table} SET deleted_at = 1, purged_at = 2")
    command.downgrade(config, "0003")
    for table in ("topics", "streams", "projects", "api_keys"):
        assert _run(url, f"SELECT count(*) FROM {table}") == [(0,)], table


def _put_topic(url: str) -> None:
    """A topic and what it stands in, and a key of its project, as release 0003 wrote them."""
    shared = (
        "display_name, labels, annotations, generation, revision, created_at, updated_at, "
        "created_by"
    )
    values = "'', '{}', '{}', 1, 1, 1, 1, 'key_1'"
    for table, columns, row in (
        ("organizations", "id, org_id, name, system", "'org_1', 'org_1', 'acme', 0"),
        ("clusters", "id, org_id, name", "'cl_1', 'org_1', 'local'"),
        ("projects", "id, org_id, name", "'prj_1', 'org_1', 'default'"),
        (
            "streams",
            "id, org_id, name, project_id, cluster_id",
            "'st_1', 'org_1', 'default', 'prj_1', 'cl_1'",
        ),
        (
            "topics",
            "id, org_id, name, project_id, cluster_id, stream_id, folded_name, spec",
            "'tp_1', 'org_1', 'orders', 'prj_1', 'cl_1', 'st_1', 'orders', '{}'",
        ),
        (
            "api_keys",
            "id, org_id, name, project_id, role, operator, public_id, secret_sha256, revoked_at",
            "'key_2', 'org_1', 'k', 'prj_1', 'viewer', 0, 'abcdefghij', zeroblob(32), 1",
        ),
    ):
        _run(url, f"INSERT INTO {table} ({columns}, {shared}) VALUES ({row}, {values})")


def _run(url: str, statement: str) -> list[tuple[object, ...]]:
    engine = create_engine(url)
    with engine.begin() as connection:
        result = connection.execute(text(statement))
        rows = [tuple(row) for row in result] if result.returns_rows else []
    engine.dispose()
    return rows


def _shape(url: str) -> dict[str, list[str]]:
    engine = create_engine(url)
    inspector = inspect(engine)
    shape = {
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
    engine.dispose()
    return shape
