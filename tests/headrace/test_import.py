"""What an import costs, in a process of its own."""

import subprocess
import sys
from pathlib import Path

HEAVY = ("grpc", "httpx2", "rich", "click", "google.protobuf", "asyncio")


def loaded_by(statement: str) -> set[str]:
    code = f"{statement}\nimport sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_headrace_loads_no_transport() -> None:
    assert loaded_by("import headrace").isdisjoint(HEAVY)


def test_the_wire_stubs_load_without_grpc() -> None:
    assert "grpc" not in loaded_by("from headrace.wire import stream_pb2")


def test_the_command_line_starts_without_grpc_and_rich() -> None:
    loaded = loaded_by("from headrace.cli.main import run; run(['version', '-o', 'json'])")
    assert loaded.isdisjoint({"grpc", "httpx2", "rich"})


def test_every_public_name_exists() -> None:
    names = loaded_by(
        "import headrace; assert all(getattr(headrace, n) is not None for n in headrace.__all__);"
        "assert callable(headrace.connect) and callable(headrace.connect)"
    )
    assert "headrace.client_factory" in names


def test_a_folder_of_that_name_beside_a_script_does_not_hide_it(tmp_path: Path) -> None:
    # As a clone is, for scripts in the folder that holds it.
    (tmp_path / "headrace").mkdir()
    (tmp_path / "script.py").write_text("import headrace; headrace.connect")
    subprocess.run([sys.executable, str(tmp_path / "script.py")], cwd=tmp_path, check=True)


def test_an_unknown_name_is_an_attribute_error() -> None:
    code = "import headrace; headrace.conect"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "has no attribute 'conect'" in done.stderr
