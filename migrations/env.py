"""Runs migrations: one transaction each, one runner at a time, and never long under a lock.

On PostgreSQL an advisory lock keeps a second runner out, and lock and statement timeouts keep a
migration from stopping the service; both are the connection's, for each revision is a transaction
of its own. On SQLite the write lock is taken at once and tables are rebuilt in batches where
needed.
"""

import time

from alembic import context
from sqlalchemy import Connection, create_engine, event, text

from api.db.tables import Base

ADVISORY_LOCK = 7_310_579_264
LOCK_TIMEOUT = "4s"
STATEMENT_TIMEOUT = "5s"
RUNNER_SECONDS_MAX = 4.0


def run(connection: Connection) -> None:
    """Runs what is missing over an open connection."""
    is_sqlite = connection.dialect.name == "sqlite"
    if not is_sqlite:
        _be_alone(connection)
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        render_as_batch=is_sqlite,
        transaction_per_migration=True,
        compare_type=True,
    )
    with context.begin_transaction():
        context.run_migrations()


def _be_alone(connection: Connection) -> None:
    """Keeps other runners out until the connection is closed, and bounds its statements.

    It asks again and again: who waits inside one statement holds a snapshot, for which an index
    that is built concurrently would wait in turn.
    """
    connection.execute(text(f"SET lock_timeout = '{LOCK_TIMEOUT}'"))
    connection.execute(text(f"SET statement_timeout = '{STATEMENT_TIMEOUT}'"))
    connection.commit()
    lock, began = text("SELECT pg_try_advisory_lock(:key)"), time.monotonic()
    while not connection.scalar(lock, {"key": ADVISORY_LOCK}):
        connection.rollback()
        if time.monotonic() - began > RUNNER_SECONDS_MAX:
            raise SystemExit("Another process migrates this database: try again when it is done.")
        time.sleep(0.1)
    connection.commit()


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
