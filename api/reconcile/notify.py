"""Hints between processes on PostgreSQL: whoever makes something due says so, and workers look at
once instead of at their next turn.

A hint carries nothing and may be lost; the queue is the truth, and workers poll it anyway. Refuses
to decide anything: a hint only wakes.
"""

import threading
from typing import Final

import psycopg
import structlog
from sqlalchemy.engine import make_url

from api.db.database import CHANNEL, Database

TURN_SECONDS: Final = 1.0
CONNECT_SECONDS: Final = 5

log = structlog.get_logger()


def listen(database: Database, stop: threading.Event) -> None:
    """Wakes the workers of this process for as long as it may; a connection that breaks is made
    anew."""
    arguments, named = database.writer.dialect.create_connect_args(make_url(database.url))
    bounded = {"connect_timeout": CONNECT_SECONDS, **named}
    while not stop.is_set():
        try:
            with psycopg.connect(*arguments, **bounded, autocommit=True) as connection:
                connection.execute(f"LISTEN {CHANNEL}")
                while not stop.is_set():
                    for _ in connection.notifies(timeout=TURN_SECONDS, stop_after=1):
                        database.wake_workers()
        except psycopg.Error as error:
            log.warning("hints_lost", error=str(error))
            stop.wait(TURN_SECONDS)
