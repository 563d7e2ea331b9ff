"""Distributions as a customer has them: a wheel from a copy of the sources, in a venv of its own.

The venv holds the wheel and what the wheel declares, transitively; the dependencies are linked from
the interpreter that runs the tests, so that nothing is fetched and nothing undeclared is found.
"""

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[3]
SERVER = ("api", "dataplane", "headrace", "migrations", "native", "reports")
SERVER_FILES = ("pyproject.toml", "setup.py", "README.md", "LICENSE")
BUILT = shutil.ignore_patterns(
    "__pycache__", "build", "*.egg-info", "*.so", "_codec.c", "_engine*.c", "node_modules"
)


def client_sources(folder: Path) -> Path:
    """A copy of the client's package folder."""
    return Path(shutil.copytree(ROOT / "headrace", folder / "headrace", ignore=BUILT))


def server_sources(folder: Path) -> Path:
    """A copy of what the server is made from."""
    target = folder / "server"
    for name in SERVER:
        shutil.copytree(ROOT / name, target / name, ignore=BUILT)
    for name in SERVER_FILES:
        shutil.copy(ROOT / name, target / name)
    return target


def wheel_of(sources: Path, folder: Path) -> Path:
    """The wheel of these sources, built without isolation."""
    build = ["-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    _run([sys.executable, *build, "--wheel-dir", str(folder), str(sources)])
    return next(folder.glob("*.whl"))


def names_in(wheel: Path) -> set[str]:
    """Every file of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@dataclass(frozen=True, slots=True)
class Venv:
    """A virtual environment without pip; commands run in ``folder``, far from the checkout."""

    folder: Path

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    def run(
        self, command: str, *arguments: str, stdin: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Runs a command of its bin folder, without any configuration of this project."""
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("HEADRACE_", "PYTHON", "VIRTUAL_ENV"))
        }
        return subprocess.run(
            [self.folder / "bin" / command, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            cwd=self.folder,
            env=environment | {"XDG_CONFIG_HOME": str(self.folder / "config"), "NO_COLOR": "1"},
            timeout=120,
            check=False,
        )


def venv_with(wheel: Path, folder: Path) -> Venv:
    """A new venv with this wheel and all that it declares."""
    _run([sys.executable, "-m", "venv", "--without-pip", str(folder)])
    venv = Venv(folder)
    pip = [sys.executable, "-m", "pip", "--python", str(venv.python)]
    _run([*pip, "install", "--quiet", "--no-index", "--no-deps", str(wheel)])
    installed = importlib.metadata.distributions(path=[str(_site(folder))])
    for name in sorted(_closure([r for found in installed for r in found.requires or ()])):
        _link(importlib.metadata.distribution(name), _site(folder))
    # What is linked satisfies every declared version, the transitive ones too.
    _run([*pip, "check"])
    return venv


def _site(folder: Path) -> Path:
    scheme = {"base": str(folder), "platbase": str(folder)}
    return Path(sysconfig.get_path("platlib", scheme="venv", vars=scheme))


def _closure(declared: Sequence[str]) -> set[str]:
    """Canonical names of what these requirements need; extras only where they are asked for."""
    found: set[tuple[str, str]] = set()
    pending = _needed(declared, "")
    while pending:
        requirement = pending.pop()
        name = re.sub(r"[-_.]+", "-", requirement.name).lower()
        for extra in {"", *requirement.extras} - {e for n, e in found if n == name}:
            found.add((name, extra))
            pending += _needed(importlib.metadata.requires(name) or (), extra)
    return {name for name, _ in found}


def _needed(requirements: Sequence[str], extra: str) -> list[Requirement]:
    parsed = [Requirement(text) for text in requirements]
    return [r for r in parsed if r.marker is None or r.marker.evaluate({"extra": extra})]


def _link(distribution: importlib.metadata.Distribution, site: Path) -> None:
    for file in distribution.files or ():
        if ".." in file.parts or "__pycache__" in file.parts:
            continue
        target = site / str(file)
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            target.symlink_to(Path(str(distribution.locate_file(file))).resolve())


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
