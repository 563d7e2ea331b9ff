"""One process at a time on an SQLite database: a lock file beside it, held for as long as we work.

A second process would be a second writer, with caches and workers of its own. On PostgreSQL
nothing is locked. `headrace up` locks its folder the same way, by the file that tells of it.
"""

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from sqlalchemy.engine import make_url

from api.db.database import Database


class InUseError(Exception):
    """Another process works on the database."""


class Exclusive:
    """A context that holds the lock of a file.

    :param path: the file, of a database mostly; None locks nothing.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._file: int | None = None

    @classmethod
    def of(cls, database: Database) -> Self:
        """The lock of a database, if it is a file."""
        url = make_url(database.url)
        return cls(Path(url.database) if database.is_sqlite and url.database else None)

    @property
    def descriptor(self) -> int:
        """For a child that shall hold the lock on when this process lets go of it."""
        assert self._file is not None
        return self._file

    def __enter__(self) -> Self:
        if self._path is None:
            return self
        lock = self._path.with_name(self._path.name + ".lock")
        self._file = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._file)
            self._file = None
            raise InUseError(
                f"Another process works on {self._path.name}: stop it first (`headrace down`), "
                "or use PostgreSQL for several processes."
            ) from None
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
