"""The customers' distribution holds one name, and its version is the server's."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from headrace.version import VERSION

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The client wheel, built from a copy so that no build folder is left in the tree."""
    folder = tmp_path_factory.mktemp("client")
    ignored = shutil.ignore_patterns("__pycache__", "*.so", "_codec.c")
    shutil.copytree(ROOT / "headrace", folder / "headrace", ignore=ignored)
    build = ["-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run(
        [sys.executable, *build, "--wheel-dir", folder, folder / "headrace"],
        check=True,
        capture_output=True,
    )
    return next(folder.glob("*.whl"))


def test_the_client_wheel_holds_only_headrace(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.partition("/")[0] for name in archive.namelist()}
    assert tops == {"headrace", f"headrace-{VERSION}.dist-info"}


def test_the_client_wheel_holds_every_module_of_the_client(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if name.endswith((".py", ".pyi"))}
    written = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "headrace").rglob("*.py*")
        if path.suffix in {".py", ".pyi"}
    }
    assert packed == written
