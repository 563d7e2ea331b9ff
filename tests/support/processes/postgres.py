"""A real PostgreSQL server of a test run's own, in a folder of its own, behind a Unix socket.

Owns the server it started and ends it. Nothing is synced to the disk: what a test keeps is gone
with its folder. PostgreSQL refuses to run as root, so root becomes `postgres` for it. Refuses to
use a server that somebody else runs.
"""

import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import psycopg
import pytest
from psycopg import sql

from deploy.production.postgres import programs

ACCOUNT: Final = "postgres"
USER: Final = "headrace"
OPTIONS: Final = {
    "listen_addresses": "",
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "shared_buffers": "32MB",
    "max_connections": "200",
    "autovacuum": "off",
    "log_min_messages": "fatal",
}
KEPT: Final = "kept"
TABLES: Final = b"SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
SEQUENCES: Final = (
    b"SELECT sequencename, coalesce(last_value, start_value), last_value IS NOT NULL "
    b"FROM pg_sequences WHERE schemaname = 'public'"
)
END_OTHERS: Final = (
    b"SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
    b"WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


# `make test` has one database; what needs this server is marked.
POSTGRESQL: Final = pytest.param("postgresql", marks=pytest.mark.check)
DATABASES: Final = ("sqlite", POSTGRESQL)


class Postgres:
    """One server with the databases that tests make in it."""

    def __init__(self, user: str = USER) -> None:
        self._user = user
        # pytest's folders are closed to other accounts, and their paths too long for a socket.
        self.folder = Path(tempfile.mkdtemp(prefix="headrace-pg-"))
        self._data = self.folder / "data"
        self._programs = programs()
        self._as_account: tuple[str, ...] = ()
        if os.geteuid() == 0:
            entry = pwd.getpwnam(ACCOUNT)
            os.chown(self.folder, entry.pw_uid, entry.pw_gid)
            # Not by subprocess, which would have to fork for it: gRPC's threads may be busy here.
            self._as_account = ("setpriv", f"--reuid={ACCOUNT}", f"--regid={ACCOUNT}")
            self._as_account += ("--clear-groups", "--")

    def __enter__(self) -> Self:
        locale = ("--locale=C", "--encoding=UTF8")
        self._run("initdb", "--no-sync", "--auth=trust", f"--username={self._user}", *locale)
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        shutil.rmtree(self.folder)

    def start(self) -> None:
        """Starts the server and returns once it takes connections."""
        options = {**OPTIONS, "unix_socket_directories": str(self.folder)}
        told = " ".join(f"-c {name}={value or repr(value)}" for name, value in options.items())
        self._run("pg_ctl", "start", "--wait", "-o", told, "--log", str(self.folder / "log"))

    def stop(self) -> None:
        """Ends the server and every session in it; what was not committed is undone."""
        self._run("pg_ctl", "stop", "--wait", "--mode=fast")

    @property
    def socket(self) -> Path:
        """Where it listens."""
        return self.folder / ".s.PGSQL.5432"

    def url(self, database: str) -> str:
        """The address of one of its databases, as SQLAlchemy takes it."""
        return f"postgresql://{self._user}@/{database}?host={self.folder}"

    def create(self, database: str, template: str = "template0") -> str:
        """Creates a database as a copy of another that has no connections. Returns its address."""
        # Copying files is several times faster here than logging every page.
        create = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy")
        self.execute(create.format(sql.Identifier(database), sql.Identifier(template)))
        return self.url(database)

    def drop(self, database: str) -> None:
        """Ends every session in a database and removes it."""
        self.execute(
            sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(database))
        )

    def keep(self, database: str) -> None:
        """Copies every row of a database beside it, for ``put_back``."""
        with self._connected(database) as connection:
            tables = [name for (name,) in connection.execute(TABLES)]
            sequences = [*connection.execute(SEQUENCES)]
            kept = sql.Identifier(KEPT)
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(kept))
            steps = []
            for table in tables:
                pair = sql.Identifier(KEPT, table), sql.Identifier("public", table)
                connection.execute(sql.SQL("CREATE TABLE {} AS TABLE {}").format(*pair))
                again = sql.SQL("DELETE FROM {1}; INSERT INTO {1} SELECT * FROM {0};")
                steps.append(again.format(*pair))
            steps += [
                sql.SQL("PERFORM setval({}, {}, {});").format(*map(sql.Literal, sequence))
                for sequence in sequences
            ]
            # As a replica: no foreign key is asked, so that the tables may come in any order.
            connection.execute(
                sql.SQL(
                    "CREATE PROCEDURE {}.put_back() LANGUAGE plpgsql "
                    "SET session_replication_role = replica AS {}"
                ).format(
                    kept, sql.Literal(f"BEGIN {sql.Composed(steps).as_string(connection)} END")
                )
            )

    def put_back(self, database: str) -> None:
        """Ends every session in a database; its rows and numbers are again those that were kept.

        Many times faster than another copy of it, which is hundreds of files. The tables are not
        put back: who changes them needs a database of its own.
        """
        with self._connected(database) as connection:
            connection.execute(END_OTHERS)
            connection.execute(sql.SQL("CALL {}.put_back()").format(sql.Identifier(KEPT)))

    def execute(self, statement: sql.Composed | bytes, database: str = ACCOUNT) -> None:
        """One statement outside any transaction, as the administrator of the server."""
        with self._connected(database) as connection:
            connection.execute(statement)

    def _connected(self, database: str) -> psycopg.Connection:
        return psycopg.connect(
            host=str(self.folder), user=self._user, dbname=database, autocommit=True
        )

    def _run(self, program: str, *arguments: str) -> None:
        told = self.folder / "output"
        # The server inherits what it is given here, and a pipe would be held open by it.
        with told.open("wb") as output:
            done = subprocess.run(
                [*self._as_account, str(self._programs / program), "-D", self._data, *arguments],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={"PATH": f"{os.defpath}:/usr/sbin:/sbin", "LC_ALL": "C", "TZ": "UTC"},
                check=False,
            )
        if done.returncode:
            raise RuntimeError(f"{program} ended with {done.returncode}: {told.read_text()}")
