"""Runs migrations: one transaction each, one runner at a time, and never long under a lock.

On PostgreSQL an advisory lock keeps a second runner out, and lock and statement timeouts keep a
migration from stopping the service. On SQLite the write lock is taken at once and tables are
rebuilt in batches where needed.
"""

from alembic import context
from sqlalchemy import Connection, create_engine, event, text

from api.tables import Base

ADVISORY_LOCK = 7_310_579_264
LOCK_TIMEOUT = "4s"
STATEMENT_TIMEOUT = "5s"


def run(connection: Connection) -> None:
    """Runs what is missing over an open connection."""
    is_sqlite = connection.dialect.name == "sqlite"
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        render_as_batch=is_sqlite,
        transaction_per_migration=True,
        compare_type=True,
    )
    with context.begin_transaction():
        if not is_sqlite:
            connection.execute(text(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'"))
            connection.execute(text(f"SET LOCAL statement_timeout = '{STATEMENT_TIMEOUT}'"))
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": ADVISORY_LOCK})
        context.run_migrations()


def main() -> None:
    """Opens the database that the configuration names."""
    url = context.config.get_main_option("sqlalchemy.url")
    if not url:
        raise SystemExit("Set sqlalchemy.url, or run `python -m api migrate`.")
    engine = create_engine(url, connect_args={"isolation_level": None} if "sqlite" in url else {})
    if engine.dialect.name == "sqlite":

        @event.listens_for(engine, "begin")
        def begin(connection: Connection) -> None:
            connection.exec_driver_sql("BEGIN IMMEDIATE")

    try:
        with engine.connect() as connection:
            run(connection)
    finally:
        engine.dispose()


main()
