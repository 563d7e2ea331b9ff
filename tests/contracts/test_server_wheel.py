"""The server's distribution: it contains the client, needs nothing else of ours, and it runs."""

import json
from collections.abc import Iterator
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

import pytest

from headrace.version import VERSION
from tests.support.processes.installed import Venv, names_in, server_sources, venv_with, wheel_of
from tests.support.source import ROOT, below

pytestmark = pytest.mark.check


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The server wheel, compiled from a copy."""
    folder = tmp_path_factory.mktemp("server")
    return wheel_of(server_sources(folder), folder)


@pytest.fixture(scope="module")
def venv(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Venv:
    """What somebody has after `pip install headrace-server`."""
    return venv_with(wheel, tmp_path_factory.mktemp("operator"))


@pytest.fixture
def service(venv: Venv) -> Iterator[Venv]:
    """`headrace up`, and `headrace down` whatever happens."""
    done = venv.run("headrace", "up", "--dir", "service", "--port", "0", "--detach")
    assert done.returncode == 0, done.stderr
    try:
        yield venv
    finally:
        venv.run("headrace", "down", "--dir", "service")


def test_the_server_wheel_holds_the_whole_client(wheel: Path) -> None:
    sources = below(ROOT / "headrace", "*.py")
    written = {path.relative_to(ROOT).as_posix() for path in sources}
    assert written | {"headrace/py.typed"} <= names_in(wheel)


def test_the_server_wheel_holds_the_engine_and_not_the_simulator(wheel: Path) -> None:
    compiled = {name for name in names_in(wheel) if name.endswith(".so")}
    assert compiled == {"native/_engine.abi3.so", "headrace/_codec.abi3.so"}
    assert f"headrace_server-{VERSION}-cp311-abi3-" in wheel.name


def test_the_server_wheel_holds_the_pages_of_the_console_and_not_their_sources(wheel: Path) -> None:
    pages = {name for name in names_in(wheel) if name.startswith("api/console/dist/")}
    assert {f"api/console/dist/{name}" for name in ("index.html", "theme.js")} <= pages
    assert {Path(name).suffix for name in pages} >= {".html", ".js", ".css", ".woff2", ".svg"}
    assert not any(name.endswith((".ts", ".tsx")) for name in names_in(wheel))


def test_the_server_does_not_depend_on_the_client(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        text = archive.read(f"headrace_server-{VERSION}.dist-info/METADATA").decode()
    needed = Parser().parsestr(text).get_all("Requires-Dist") or []
    assert needed
    assert not [line for line in needed if line.startswith("headrace")]


def test_an_installed_server_starts_takes_records_gives_them_back_and_ends(service: Venv) -> None:
    assert service.run("headrace", "--version").stdout == f"headrace {VERSION}\n"
    created = service.run("headrace", "topic", "create", "orders", "--partitions", "2")
    assert created.returncode == 0, created.stderr
    produced = service.run("headrace", "produce", "orders", stdin="one\ntwo\nthree\n")
    assert produced.stderr == "3 records stored in orders\n"
    read = service.run("headrace", "consume", "orders", "--from", "start", "-e", "-o", "csv")
    values = sorted(line.split(",")[5] for line in read.stdout.splitlines()[1:])
    assert values == ["one", "three", "two"]
    again = service.run("headrace", "up", "--dir", "service", "-o", "json")
    assert json.loads(again.stdout)["directory"] == str(service.folder / "service")
    stopped = service.run("headrace", "down", "--dir", "service", "-o", "json")
    assert json.loads(stopped.stdout)["stopped"] is True
    assert (
        service.run("headrace", "down", "--dir", "service").stdout
        == "The service is not running.\n"
    )
