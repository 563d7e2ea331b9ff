"""The schema of the database: brought up by Alembic, and checked before anybody works on it."""

from pathlib import Path
from typing import Final

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from api.db.database import Database

MIGRATIONS: Final = Path(__file__).resolve().parents[2] / "migrations"


class SchemaError(Exception):
    """The database is of another release; working on it could destroy what that release wrote."""


def alembic_config(url: str) -> Config:
    """Alembic's configuration for a database, without any file."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.set_main_option("sqlalchemy.url", url.replace("%", "%%"))
    return config


def migrate(url: str) -> None:
    """Brings a database to this release's schema; nothing happens if it is there already."""
    command.upgrade(alembic_config(url), "head")


def head_revision() -> str:
    """The revision this release works on."""
    head = ScriptDirectory(str(MIGRATIONS)).get_current_head()
    assert head is not None
    return head


def check_schema(database: Database) -> None:
    """Refuses a database of another release.

    :raises SchemaError: says which revision it has and which one is needed.
    """
    with database.reader.connect() as connection:
        found = MigrationContext.configure(connection).get_current_revision()
    if found != head_revision():
        raise SchemaError(
            f"The database is at schema {found or 'none'}, this release needs {head_revision()}. "
            "Run `python -m api migrate` after taking a backup; never start an older release on it."
        )
