"""Notifications between processes on PostgreSQL: a commit that makes something due, or that changes
a status, says so, and workers and waiting requests look at once instead of at their next turn.

    headrace_work     -> the workers of this process are woken
    headrace_status   -> those who wait for the object that it names are woken

One connection a process listens for all of them. A notification may be lost: the tables are the
truth, and everyone reads them now and then anyway. After a connection is made everyone is woken
once, for what was missed before. Refuses to decide anything: a notification only wakes.
"""

import threading
from typing import Final

import psycopg
import structlog
from sqlalchemy.engine import make_url

from api.db.database import STATUS_CHANNEL, WORK_CHANNEL, Database

TURN_SECONDS: Final = 1.0
CONNECT_SECONDS: Final = 5
# A server that is gone without a word is found out, as by the other connections.
KEEPALIVE: Final = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3}

log = structlog.get_logger()


class Listener:
    """The thread that listens; on SQLite there is none, for there is one process."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begins to listen."""
        if not self._database.is_sqlite:
            self._thread = threading.Thread(target=self._run, name="notifications", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Ends the thread and its connection."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        """Listens until it is stopped; a connection that breaks is made anew."""
        database = self._database
        arguments, named = database.writer.dialect.create_connect_args(make_url(database.url))
        bounded = {"connect_timeout": CONNECT_SECONDS, **KEEPALIVE, **named}
        while not self._stop.is_set():
            try:
                with psycopg.connect(*arguments, **bounded, autocommit=True) as connection:
                    self._listen(connection)
            except psycopg.Error as error:
                log.warning("notifications_lost", error=str(error))
                self._stop.wait(TURN_SECONDS)

    def _listen(self, connection: psycopg.Connection[tuple[object, ...]]) -> None:
        for channel in (WORK_CHANNEL, STATUS_CHANNEL):
            connection.execute(f"LISTEN {channel}")
        self._database.wake_workers()
        self._database.changes.publish_all()
        while not self._stop.is_set():
            for each in connection.notifies(timeout=TURN_SECONDS, stop_after=1):
                if each.channel == WORK_CHANNEL:
                    self._database.wake_workers()
                else:
                    self._database.changes.publish([each.payload])
