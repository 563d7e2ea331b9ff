"""The customers' distribution: one name, every module, the server's version, no server."""

from pathlib import Path

import pytest

from headrace.version import VERSION
from tests.support.processes.installed import Venv, client_sources, names_in, venv_with, wheel_of
from tests.support.source import ROOT, below


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The client wheel, built from a copy so that no build folder is left in the tree."""
    folder = tmp_path_factory.mktemp("client")
    return wheel_of(client_sources(folder), folder)


@pytest.fixture(scope="module")
def venv(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Venv:
    """What a customer has after `pip install headrace`."""
    return venv_with(wheel, tmp_path_factory.mktemp("customer"))


def test_the_client_wheel_holds_only_headrace(wheel: Path) -> None:
    tops = {name.partition("/")[0] for name in names_in(wheel)}
    assert tops == {"headrace", f"headrace-{VERSION}.dist-info"}


def test_the_client_wheel_suits_every_platform(wheel: Path) -> None:
    assert wheel.name == f"headrace-{VERSION}-py3-none-any.whl"


def test_the_client_wheel_holds_every_module_of_the_client(wheel: Path) -> None:
    packed = {name for name in names_in(wheel) if name.endswith((".py", ".pyi"))}
    written = {
        path.relative_to(ROOT).as_posix()
        for path in below(ROOT / "headrace", "*.py*")
        if path.suffix in {".py", ".pyi"}
    }
    assert packed == written
    assert any(name.endswith("licenses/LICENSE") for name in names_in(wheel))


def test_a_customer_imports_the_sdk_and_nothing_of_the_server(venv: Venv) -> None:
    code = "import headrace, importlib.util as u; print(headrace.__version__, u.find_spec('api'))"
    done = venv.run("python", "-c", code)
    assert (done.stdout, done.stderr) == (f"{VERSION} None\n", "")


def test_every_module_of_the_client_is_imported_by_its_declared_dependencies(venv: Venv) -> None:
    code = (
        "import headrace, importlib, pkgutil\n"
        "for found in pkgutil.walk_packages(headrace.__path__, 'headrace.'):\n"
        "    if not found.name.endswith(('__main__', '.native_codec')):\n"
        "        importlib.import_module(found.name)\n"
    )
    done = venv.run("python", "-c", code)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_installed_command_tells_its_version(venv: Venv) -> None:
    assert venv.run("headrace", "--version").stdout == f"headrace {VERSION}\n"


@pytest.mark.parametrize("verb", ["up", "down"])
def test_a_verb_of_the_server_says_what_to_install(venv: Venv, verb: str) -> None:
    done = venv.run("headrace", verb, "--dir", "here")
    assert (done.returncode, done.stdout) == (1, "")
    assert "pip install headrace-server" in done.stderr
    assert not (venv.folder / "here").exists()


def test_what_an_install_leaves_among_the_sources_is_none_of_them(tmp_path: Path) -> None:
    for name in ("build/lib/headrace/client.py", "headrace.egg-info/x.py", "wire/client.py"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    assert below(tmp_path, "*.py*") == [tmp_path / "wire" / "client.py"]
