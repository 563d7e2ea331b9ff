"""The database: engines, sessions, the clock, and what every table shares.

On SQLite there is one writer, and a write transaction begins with BEGIN IMMEDIATE: a deferred one
that reads first and writes later is refused with SQLITE_BUSY at once, whatever the timeout says.
Readers have an engine of their own, so that a long list never holds up a write. The same code runs
on PostgreSQL with any number of writers: they read what is committed and lock the rows they decide
by; a reader sees one snapshot on both.

Times are instants in UTC; SQLite keeps them as integer microseconds. This module refuses to know
any table but the one it needs itself: `meta`.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol, TypeAlias

from sqlalchemy import (
    TIMESTAMP,
    BigInteger,
    Connection,
    Dialect,
    Engine,
    MetaData,
    QueuePool,
    String,
    create_engine,
    event,
    func,
    select,
    text,
)
from sqlalchemy.engine import make_url
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column
from sqlalchemy.types import TypeDecorator, TypeEngine

from api.db.changes import Changes

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
READERS_MAX: Final = 48
# What a session remembers until its commit: that something is due, and whose status changed.
WAKE: Final = "wake"
CHANGED: Final = "changed"
WORK_CHANNEL: Final = "headrace_work"
STATUS_CHANNEL: Final = "headrace_status"
BUSY_TIMEOUT_MS: Final = 5000
IDLE_SECONDS: Final = 60

Clock: TypeAlias = Callable[[], datetime]


class Base(DeclarativeBase):
    """Every table of the control plane; constraints have names, so that a migration can speak of
    them."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(column_0_label)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )


class Instant(TypeDecorator[datetime]):
    """A moment in UTC: timestamptz on PostgreSQL, integer microseconds since 1970 on SQLite."""

    impl = BigInteger
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[datetime] | TypeEngine[int]:
        """The column type the database sees."""
        if dialect.name == "postgresql":
            return dialect.type_descriptor(TIMESTAMP(timezone=True))
        return dialect.type_descriptor(BigInteger())

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | int | None:
        """Refuses a moment without a zone: it would mean another one on the next machine."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("an Instant needs a time zone")
        return value if dialect.name == "postgresql" else microseconds(value)

    def process_result_value(
        self, value: datetime | int | None, dialect: Dialect
    ) -> datetime | None:
        """Always aware, always UTC."""
        if value is None:
            return None
        if isinstance(value, datetime):
            return value.astimezone(UTC)
        return EPOCH + timedelta(microseconds=value)


def microseconds(moment: datetime) -> int:
    """Whole microseconds since 1970, exactly."""
    return (moment - EPOCH) // timedelta(microseconds=1)


class Meta(Base):
    """Facts of this database itself: ``db_epoch``, ``db_instance``, ``page_token_key``."""

    __tablename__ = "meta"

    key: Mapped[str] = mapped_column(String(64), primary_key=True)
    value: Mapped[str] = mapped_column(String(256))


class _Cursor(Protocol):
    def execute(self, sql: str) -> object: ...
    def close(self) -> None: ...


class _DriverConnection(Protocol):
    def cursor(self) -> _Cursor: ...


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much of PostgreSQL one process takes, and how long it waits for it.

    :param connections: at most, for changes; and as many again for reads.
    :param wait_seconds: for a connection that is free, and for a new one to be there.
    :param statement_seconds: for one statement, locks included; the server ends it then.
    """

    connections: int = 16
    wait_seconds: int = 5
    statement_seconds: int = 30


class Database:
    """Sessions over one database.

    :param url: an SQLAlchemy URL; ``sqlite:///path`` or ``postgresql://..``.
    :param bounds: for PostgreSQL; SQLite has one writer, and its readers never wait.
    :param clock: the time of everything that is decided with it; the database's own by default.
    """

    def __init__(
        self, url: str, bounds: Bounds | None = None, *, clock: Clock | None = None
    ) -> None:
        self.url = url
        self._bounds = bounds or Bounds()
        self.is_sqlite = make_url(url).get_backend_name() == "sqlite"
        self._clock = clock
        self.writer = self._engine(read_only=False)
        self.reader = self._engine(read_only=True)
        self._wake = threading.Condition()
        self.wakes = 0
        self.changes = Changes()

    def close(self) -> None:
        """Returns every connection."""
        self.writer.dispose()
        self.reader.dispose()

    @contextmanager
    def write(self) -> Iterator[Session]:
        """One write transaction: committed at the end, rolled back by any exception."""
        with Session(self.writer, expire_on_commit=False) as session:
            with session.begin():
                yield session
                if not self.is_sqlite:
                    self._notify(session)
            if session.info.get(WAKE):
                self.wake_workers()
            if self.is_sqlite:
                self.changes.publish(session.info.get(CHANGED, ()))

    @contextmanager
    def trial(self) -> Iterator[Session]:
        """A write transaction that is always rolled back: what a dry run needs."""
        with Session(self.writer, expire_on_commit=False) as session:
            try:
                yield session
                session.flush()
            finally:
                session.rollback()

    @contextmanager
    def read(self) -> Iterator[Session]:
        """One read transaction over one snapshot."""
        with Session(self.reader, expire_on_commit=False) as session, session.begin():
            yield session

    def now(self, session: Session) -> datetime:
        """The database's clock: on SQLite that is this host's, on PostgreSQL it is asked."""
        if self._clock is not None:
            return self._clock()
        if self.is_sqlite:
            return datetime.now(UTC)
        moment = session.scalar(select(func.clock_timestamp()))
        assert isinstance(moment, datetime)
        return moment.astimezone(UTC)

    def wake_workers(self) -> None:
        """Tells the workers of this process that something is due."""
        with self._wake:
            self.wakes += 1
            self._wake.notify_all()

    def wait_for_work(self, seen: int, seconds: float) -> None:
        """Waits until something became due since ``wakes`` was ``seen``, or some seconds passed."""
        with self._wake:
            self._wake.wait_for(lambda: self.wakes != seen, seconds)

    def _notify(self, session: Session) -> None:
        """Tells every process, this one too, what the commit changes; it comes with the commit."""
        if session.info.get(WAKE):
            session.execute(text(f"NOTIFY {WORK_CHANNEL}"))
        for object_id in sorted(session.info.get(CHANGED, ())):
            session.execute(select(func.pg_notify(STATUS_CHANNEL, object_id)))

    def _engine(self, *, read_only: bool) -> Engine:
        """Errors of it never tell the values of a statement: they are what users wrote."""
        if not self.is_sqlite:
            return self._postgresql_engine(read_only=read_only)
        engine = create_engine(
            self.url,
            poolclass=QueuePool,
            pool_size=READERS_MAX if read_only else 1,
            max_overflow=0,
            hide_parameters=True,
            connect_args={"isolation_level": None, "check_same_thread": False},
        )

        @event.listens_for(engine, "connect")
        def prepare(connection: _DriverConnection, _record: object) -> None:
            cursor = connection.cursor()
            cursor.execute("PRAGMA journal_mode = WAL")
            cursor.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
            cursor.execute("PRAGMA foreign_keys = ON")
            cursor.execute("PRAGMA synchronous = FULL")
            if read_only:
                cursor.execute("PRAGMA query_only = ON")
            cursor.close()

        @event.listens_for(engine, "begin")
        def begin(connection: Connection) -> None:
            connection.exec_driver_sql("BEGIN" if read_only else "BEGIN IMMEDIATE")

        return engine

    def _postgresql_engine(self, *, read_only: bool) -> Engine:
        """A transaction that is never ended, or a lost host, must not lock rows for ever."""
        bounds = self._bounds
        server = (
            f"-c statement_timeout={bounds.statement_seconds}s "
            f"-c idle_in_transaction_session_timeout={IDLE_SECONDS}s -c timezone=UTC"
        )
        given = make_url(self.url).query.get("options", "")
        engine = create_engine(
            self.url,
            pool_pre_ping=True,
            hide_parameters=True,
            pool_size=bounds.connections,
            max_overflow=0,
            pool_timeout=bounds.wait_seconds,
            isolation_level="REPEATABLE READ" if read_only else "READ COMMITTED",
            connect_args={
                "connect_timeout": bounds.wait_seconds,
                "application_name": "headrace",
                "options": f"{server} {given}".strip(),
                "keepalives_idle": 10,
                "keepalives_interval": 5,
                "keepalives_count": 3,
                "tcp_user_timeout": bounds.statement_seconds * 1000,
            },
        )
        return engine.execution_options(postgresql_readonly=True) if read_only else engine


def meta_value(session: Session, key: str) -> str:
    """A fact of this database; bootstrap wrote it."""
    row = session.get(Meta, key)
    if row is None:
        raise LookupError(f"the database has no {key}: it was never bootstrapped")
    return row.value
