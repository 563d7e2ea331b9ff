"""Migrations go up, down and up again with nothing left behind, and end at what the models say."""

from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine, inspect

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
