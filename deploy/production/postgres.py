"""A PostgreSQL server of the layout's own, in its folder, on a port of the loopback.

Owns the server's files and how it is started; it is durable, and asks everybody for a password.
PostgreSQL refuses to run as root, so root becomes `postgres` for it. Refuses to use a server that
somebody else runs.
"""

import os
import pwd
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, LiteralString

import psycopg
from psycopg import sql

from api.embedded.ports import HOST
from headrace.errors import ConfigurationInvalid

ACCOUNT: Final = "postgres"
ADMINISTRATOR: Final = "postgres"
ROLE: Final = "headrace"
DEBIAN: Final = Path("/usr/lib/postgresql")
START_SECONDS: Final = 60.0
POLL_SECONDS: Final = 0.05
OPTIONS: Final = {
    "listen_addresses": HOST,
    "unix_socket_directories": "",
    "max_connections": "200",
    "shared_buffers": "64MB",
}
DATABASE: Final[LiteralString] = (
    "CREATE DATABASE {name} OWNER {name} TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C'"
)


class Server:
    """One server.

    :param folder: everything of it; becomes the account's that the server runs as.
    """

    def __init__(self, folder: Path, port: int) -> None:
        self._folder = folder
        self._data = folder / "data"
        self._password_file = folder / "password"
        self._port = port
        self._account: tuple[str, ...] = ()
        if os.geteuid() == 0:
            self._account = (f"--reuid={ACCOUNT}", f"--regid={ACCOUNT}", "--clear-groups")

    @property
    def command(self) -> list[str]:
        """What runs it in the foreground. SIGINT ends it in order, without waiting for clients; it
        gets one too when the process that started it is killed."""
        told = [f"-c{name}={value}" for name, value in OPTIONS.items()]
        program = str(programs() / "postgres")
        become = ["setpriv", "--pdeathsig", "INT", *self._account, "--"]
        return [*become, program, "-D", str(self._data), f"-p{self._port}", *told]

    def url(self, password: str) -> str:
        """The address of the database for SQLAlchemy."""
        return f"postgresql://{ROLE}:{password}@{HOST}:{self._port}/{ROLE}"

    def initialize(self) -> None:
        """Makes the files of the server unless they are there.

        :raises ConfigurationInvalid: the account cannot reach the folder, or initdb says why not.
        """
        if (self._data / "PG_VERSION").exists():
            return
        self._folder.mkdir(exist_ok=True, mode=0o700)
        self._password_file.touch(mode=0o600)
        self._password_file.write_text(secrets.token_urlsafe(24) + "\n")
        if self._account:
            self._hand_over()
        # Beside its place until it is whole: initdb writes PG_VERSION first, and leaves that behind
        # if it is killed.
        making = self._folder / "making"
        for left in (making, self._data):
            shutil.rmtree(left, ignore_errors=True)
        done = subprocess.run(
            ["setpriv", *self._account, "--", str(programs() / "initdb"), "-D", str(making),
             "--auth=scram-sha-256", f"--username={ADMINISTRATOR}",
             f"--pwfile={self._password_file}", "--locale=C", "--encoding=UTF8"],
            cwd=self._folder,
            capture_output=True,
            text=True,
            check=False,
        )  # fmt: skip
        if done.returncode:
            raise ConfigurationInvalid(f"initdb: {done.stderr.strip()[-400:]}")
        making.rename(self._data)

    @contextmanager
    def running(self, log_path: Path) -> Iterator[None]:
        """The server, for as long as something is prepared in it.

        :raises ConfigurationInvalid: it does not start; its log says why.
        """
        with log_path.open("ab") as log:
            process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )
        try:
            deadline = time.monotonic() + START_SECONDS
            while not self.answers():
                if process.poll() is not None or time.monotonic() > deadline:
                    raise ConfigurationInvalid("PostgreSQL does not start", hint=f"See {log_path}")
                time.sleep(POLL_SECONDS)
            yield
        finally:
            process.send_signal(signal.SIGINT)
            process.wait()

    def ensure_database(self, password: str) -> None:
        """The role and its database, which sorts by bytes: no library of the host changes that."""
        name = sql.Identifier(ROLE)
        with self._connected() as connection:
            known = connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [ROLE])
            verb = sql.SQL("ALTER" if known.fetchone() else "CREATE")
            role = sql.SQL("{} ROLE {} LOGIN PASSWORD {}")
            connection.execute(role.format(verb, name, sql.Literal(password)))
            found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [ROLE])
            if found.fetchone() is None:
                connection.execute(sql.SQL(DATABASE).format(name=name))

    def answers(self) -> bool:
        """Whether it takes connections now."""
        try:
            self._connected().close()
        except psycopg.OperationalError:
            return False
        return True

    def _connected(self) -> psycopg.Connection:
        return psycopg.connect(
            host=HOST,
            port=self._port,
            user=ADMINISTRATOR,
            password=self._password_file.read_text().strip(),
            dbname=ADMINISTRATOR,
            autocommit=True,
            connect_timeout=2,
        )

    def _hand_over(self) -> None:
        try:
            pwd.getpwnam(ACCOUNT)
        except KeyError:
            raise ConfigurationInvalid(
                f"There is no account {ACCOUNT}, and PostgreSQL refuses to run as root",
                hint="apt-get install postgresql-15",
            ) from None
        for path in (self._folder, self._password_file):
            shutil.chown(path, ACCOUNT, ACCOUNT)
        reached = ["setpriv", *self._account, "--", "test", "-w", str(self._folder)]
        if subprocess.run(reached, check=False).returncode:
            raise ConfigurationInvalid(
                f"The account {ACCOUNT} cannot reach {self._folder}",
                hint="Each folder above it must let others pass (chmod o+x), or give another one: "
                "make up PRODUCTION=1 DIR=/var/tmp/headrace",
            )


def programs() -> Path:
    """Where the newest release is that Debian has installed, or else what is on the path.

    :raises ConfigurationInvalid: there is none.
    """
    found = sorted(DEBIAN.glob("*/bin/initdb"), key=lambda each: int(each.parts[-3]))
    program = str(found[-1]) if found else shutil.which("initdb")
    if program is None:
        raise ConfigurationInvalid(
            "PostgreSQL is not installed", hint="apt-get install postgresql-15"
        )
    return Path(program).parent
