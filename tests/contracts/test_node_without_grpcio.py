"""What a process must not load: the node no grpcio, the bare client nothing slow.

The engine speaks gRPC itself. A second implementation in the same process would cost memory, and
threads that wait for the GIL.
"""

import pkgutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def modules_of(package: str) -> list[str]:
    """Every module of a package, by walking its folder; service stubs are the clients' part."""
    found = pkgutil.walk_packages([str(ROOT / package)], f"{package}.")
    return [package, *(module.name for module in found if not module.name.endswith("_pb2_grpc"))]


def loaded_after_importing(names: Iterable[str]) -> set[str]:
    """The top-level modules of a fresh interpreter that imported these."""
    program = "import sys\n" + "\n".join(f"import {name}" for name in names)
    program += "\nprint('\\n'.join({name.partition('.')[0] for name in sys.modules}))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.mark.parametrize("unwanted", ["grpc", "sqlalchemy", "fastapi", "pyspark", "pyarrow"])
def test_the_node_does_not_load(unwanted: str, node_modules: set[str]) -> None:
    assert unwanted not in node_modules


@pytest.fixture(scope="module")
def node_modules() -> set[str]:
    """What a process holds that imported the whole node."""
    names = [name for name in modules_of("dataplane") if not name.endswith("__main__")]
    return loaded_after_importing(names)


def test_importing_the_client_loads_no_transport() -> None:
    assert not loaded_after_importing(["headrace"]) & {"grpc", "httpx2", "pyarrow", "rich"}


def test_the_command_line_starts_without_transports() -> None:
    loaded = loaded_after_importing(["headrace.cli.main"])
    assert not loaded & {"grpc", "httpx2", "pyarrow", "sqlalchemy", "fastapi", "pyspark"}
