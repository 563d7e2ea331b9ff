"""A control plane over a real database, with a clock that tests move, and a scripted node.

Every test that takes a `service` runs twice: over an SQLite file, and over a PostgreSQL database.
Both were migrated and bootstrapped once; before each test they are made what they were then. What
takes time to build is built once as well and refuses to remember a test: the application, its
clients' event loop, and the engines with the statements that they have compiled.
"""

import itertools
import os
import random
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest
from argon2 import PasswordHasher
from fastapi import FastAPI
from fastapi.testclient import TestClient
from pydantic import JsonValue as Json
from sqlalchemy import event

from api.api_keys.reconciler import KeyReconciler
from api.app import create_app
from api.auth.rate import Limits, Policy
from api.auth.tokens import new_token
from api.bootstrap.seed import Bootstrapped, bootstrap, readdress
from api.db.database import Database
from api.db.schema import migrate
from api.holds.reconciler import HoldReconciler
from api.node.addresses import registrations
from api.node.client import NodeClient
from api.node.pool import NodePool
from api.projects.reconciler import ProjectReconciler
from api.reconcile.loop import Loop
from api.settings import DatabaseSettings, NodeSettings, ReportsSettings, Settings
from api.streams.reconciler import StreamReconciler
from api.telemetry import configure_logs
from api.topics.reconciler import TopicReconciler
from tests.support.processes.node_process import NodeProcess
from tests.support.processes.postgres import DATABASES, Postgres
from tests.support.processes.scripted_node import FakeNode, serving
from tests.support.proxies.node_proxy import NodeProxy

# How often a race is run. A thousand times is for who has the time.
OFTEN = 1000 if os.environ.get("HYPOTHESIS_PROFILE") == "explore" else 24

# Parsed JSON; what the tests assert is its type.
Body: TypeAlias = Any
BEGIN: Final = datetime(2026, 3, 1, 12, tzinfo=UTC)


@dataclass
class Clock:
    """A clock that advances only when it is set."""

    moment: datetime = BEGIN

    def __call__(self) -> datetime:
        return self.moment

    def advance(self, seconds: float) -> None:
        """Moves on."""
        self.moment += timedelta(seconds=seconds)


@dataclass
class Seconds:
    """Seconds that stand until they are moved."""

    passed: float = 0.0

    def __call__(self) -> float:
        return self.passed

    def advance(self, seconds: float) -> None:
        """Moves on."""
        self.passed += seconds


@dataclass
class Service:
    """A control plane and what tests need of it."""

    client: TestClient
    database: Database
    clock: Clock
    loop: Loop
    node: FakeNode
    nodes: NodePool
    first: Bootstrapped
    settings: Settings
    keys: dict[str, str] = field(default_factory=dict)

    @property
    def owner(self) -> dict[str, str]:
        """The operator's header."""
        return bearer(self.first.token.text)

    def post(self, path: str, body: Json, key: dict[str, str] | None = None, **more: str) -> Body:
        """The body of a create that must succeed."""
        headers = {**(key or self.owner), **more}
        response = self.client.post(path, json=body, headers=headers)
        assert response.status_code in (201, 202), response.text
        return response.json()

    def get(self, path: str, key: dict[str, str] | None = None) -> Body:
        """The body of a read that must succeed."""
        response = self.client.get(path, headers=key or self.owner)
        assert response.status_code == 200, response.text
        return response.json()

    def topic(self, name: str = "orders", **spec: Json) -> Body:
        """A new topic's body."""
        return self.post("/v1/topics", {"name": name, "spec": dict(spec)})

    def hold(self, topic: Body, case: str = "C-1", **more: Json) -> Body:
        """A new hold's body."""
        desired: dict[str, Json] = {"topic_id": topic["id"], "case_id": case, "reason": "a suit"}
        return self.post("/v1/legal-holds", {**desired, **more})

    def key(self, role: str, organization_id: str | None = None, **more: Json) -> dict[str, str]:
        """The header of a new key."""
        name = f"{role}-{len(self.keys)}"
        body: dict[str, Json] = {"name": name, "spec": {"role": role}, **more}
        if organization_id is not None:
            body["organization_id"] = organization_id
        answer = self.post("/v1/api-keys", body)
        self.keys[name] = str(answer["id"])
        return bearer(str(answer["secret"]))

    def settle(self, *, passes: int = 100) -> int:
        """Runs every pass that is due now; how many there were."""
        for count in range(passes):
            if not self.loop.run_once():
                return count
        raise AssertionError(f"still busy after {passes} passes")

    @contextmanager
    def working(self) -> Iterator[None]:
        """A worker that runs every pass that is due, until the end of the block."""
        stopped = threading.Event()

        def work() -> None:
            while not stopped.is_set():
                seen = self.database.wakes
                if not self.loop.run_once():
                    self.database.wait_for_work(seen, 0.1)

        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(work)
            try:
                yield
            finally:
                stopped.set()
                self.database.wake_workers()
            running.result()


def bearer(token: str) -> dict[str, str]:
    """The header that carries a token."""
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture(scope="session", autouse=True)
def _logs() -> None:
    """As in production; the default of structlog draws every variable of a traceback."""
    configure_logs("warning")


@pytest.fixture(scope="session", autouse=True)
def _cheap_hashes() -> Iterator[None]:
    """A cheap hash: that of a password is slow on purpose, which tests do not need."""
    cheap = PasswordHasher(time_cost=1, memory_cost=64, parallelism=1)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("api.sessions.service.HASHER", cheap)
        yield


@dataclass(frozen=True, slots=True)
class Installation:
    """A bootstrapped database, and what its first run made.

    ``database`` is open on it, with the clock of the tests. ``put_back`` makes it again what the
    first run left. ``another`` is the address of a new one like it, for a process of its own; if it
    is a file, then in that folder.
    """

    url: str
    first: Bootstrapped
    database: Database
    put_back: Callable[[], None]
    another: Callable[[Path], str]


def _first_run(url: str) -> Bootstrapped:
    migrate(url)
    database = Database(url, clock=Clock())
    first = bootstrap(database, node_address="127.0.0.1:1")
    assert first is not None
    database.close()
    return first


@pytest.fixture(scope="session")
def wall() -> Clock:
    """The only clock; the engines know it for as long as they are open."""
    return Clock()


@pytest.fixture(scope="session")
def sqlite(tmp_path_factory: pytest.TempPathFactory, wall: Clock) -> Installation:
    """An SQLite file. As with PostgreSQL here, nothing waits for the disk."""
    folder = tmp_path_factory.mktemp("sqlite")
    template = folder / "template.db"
    first = _first_run(f"sqlite:///{template}")
    database = Database(f"sqlite:///{folder}/control.db", clock=wall)
    for engine in (database.writer, database.reader):
        event.listen(engine, "connect", _never_sync)

    def put_back() -> None:
        for path in folder.glob("control.db*"):
            path.unlink()
        shutil.copy(template, folder / "control.db")

    def another(place: Path) -> str:
        return f"sqlite:///{shutil.copy(template, place / 'control.db')}"

    return Installation(database.url, first, database, put_back, another)


def _never_sync(connection: sqlite3.Connection, _record: object) -> None:
    connection.execute("PRAGMA synchronous = OFF")


@pytest.fixture(scope="session")
def postgresql(postgres: Postgres, wall: Clock) -> Installation:
    """A PostgreSQL database: `test`, made from `template`."""
    first = _first_run(postgres.create("template"))
    database = Database(postgres.create("test", "template"), clock=wall)
    postgres.keep("test")
    numbers = itertools.count()
    return Installation(
        database.url,
        first,
        database,
        put_back=lambda: postgres.put_back("test"),
        another=lambda _place: postgres.create(f"process{next(numbers)}", "template"),
    )


@pytest.fixture(params=DATABASES)
def installation(request: pytest.FixtureRequest) -> Iterator[Installation]:
    """A database as its first run left it."""
    found: Installation = request.getfixturevalue(request.param)
    found.put_back()
    yield found
    found.database.close()


@pytest.fixture(scope="module", params=DATABASES)
def stored(request: pytest.FixtureRequest) -> Installation:
    """The kind of database behind the processes of a module."""
    found: Installation = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="session")
def application() -> FastAPI:
    """The application; each test puts its own database under it, for building one takes time."""
    return create_app(Settings(), Database("sqlite://"), NodePool(Settings().node.admin_key_file))


@pytest.fixture(scope="session")
def caller(application: FastAPI) -> Iterator[TestClient]:
    """Asks the application in one event loop, as a server does."""
    with TestClient(application, raise_server_exceptions=False) as asking:
        yield asking


@pytest.fixture
def clock(wall: Clock) -> Clock:
    """The clock, at its beginning."""
    wall.moment = BEGIN
    return wall


@pytest.fixture
def node() -> Iterator[FakeNode]:
    with serving(FakeNode()) as fake:
        yield fake


@pytest.fixture
def service(
    tmp_path: Path,
    installation: Installation,
    application: FastAPI,
    caller: TestClient,
    clock: Clock,
    node: FakeNode,
) -> Iterator[Service]:
    """A bootstrapped control plane; its loop runs when the test says so."""
    first = installation.first
    key_file = tmp_path / "node.key"
    key_file.write_text(new_token("node").text)
    settings = Settings(
        database=DatabaseSettings(url=installation.url),
        node=NodeSettings(admin_key_file=key_file),
        reports=ReportsSettings(uri=str(tmp_path / "reports"), logs=str(tmp_path / "logs")),
    )
    database = installation.database
    readdress(database, node_id=first.identity.node_id, node_address=node.address)
    nodes = NodePool(key_file, partial(registrations, database))
    client = NodeClient(nodes, limited=False)
    loop = Loop(
        database,
        {
            "topic": TopicReconciler(database, client),
            "hold": HoldReconciler(database, client),
            "key": KeyReconciler(database, client),
            "stream": StreamReconciler(database),
            "project": ProjectReconciler(database),
        },
        dice=random.Random(7),
    )
    application.state.settings = settings
    application.state.database = database
    application.state.nodes = nodes
    application.state.limits = Limits(Policy(burst=100_000, per_second=1))
    caller.cookies.clear()
    yield Service(caller, database, clock, loop, node, nodes, first, settings)
    nodes.close()


@pytest.fixture(scope="session")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    """One real node for all: objects have ids of their own, whatever database they come from."""
    with NodeProcess(tmp_path_factory.mktemp("node")) as running:
        yield running


@pytest.fixture
def road(service: Service, process: NodeProcess) -> Iterator[NodeProxy]:
    """Where the first cluster's node is found: the real one behind a proxy."""
    service.settings.node.admin_key_file.write_text(process.node_key)
    with NodeProxy(process.grpc_port) as proxy:
        node_id = service.first.identity.node_id
        readdress(service.database, node_id=node_id, node_address=proxy.address)
        yield proxy


@pytest.fixture
def other(service: Service) -> tuple[str, dict[str, str]]:
    """Another organization: its id and its owner's header."""
    answer = service.post("/v1/orgs", {"name": "globex"})
    assert isinstance(answer, dict)
    organization_id = str(answer["id"])
    return organization_id, service.key("owner", organization_id)
