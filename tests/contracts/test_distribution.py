"""What is installed: one version, locked requirements, every import declared, every verb there."""

import ast
import importlib.metadata
import re
import tomllib
from pathlib import Path

import pytest

from headrace.version import VERSION
from tests.support.source import ROOT, below

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))
SPARK_ONLY = {"numpy", "pandas", "pyarrow", "pyspark"}
# What other declared packages promise to bring along and re-export.
THROUGH = {"starlette": "fastapi", "pydantic_core": "pydantic", "google": "protobuf"}


def distribution_name(requirement: str) -> str:
    """`SQLAlchemy[x]~=2` -> `sqlalchemy`."""
    matched = re.match(r"[\w.-]+", requirement)
    assert matched is not None
    return re.sub(r"[-_.]+", "-", matched.group()).lower()


def imported(folder: str) -> set[str]:
    """Top-level names that the Python files of a folder import."""
    names: set[str] = set()
    for path in below(ROOT / folder, "*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names.add(node.module.partition(".")[0])
    return names


def test_the_installed_version_is_the_one_in_the_version_file() -> None:
    assert importlib.metadata.version("headrace-server") == VERSION


@pytest.mark.parametrize("group", ["console_scripts", "headrace.commands"])
def test_every_entry_point_leads_to_something_callable(group: str) -> None:
    points = importlib.metadata.distribution("headrace-server").entry_points.select(group=group)
    assert points
    assert all(callable(point.load()) for point in points)


@pytest.mark.parametrize("folder", ["api", "dataplane", "headrace", "migrations", "native"])
def test_every_import_of_the_server_is_a_declared_dependency(folder: str) -> None:
    declared = {distribution_name(requirement) for requirement in PROJECT["dependencies"]}
    assert undeclared(folder, declared) <= SPARK_ONLY


def test_every_import_of_the_reports_is_a_declared_dependency() -> None:
    declared = {
        distribution_name(requirement)
        for requirement in (*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["spark"])
    }
    assert not undeclared("reports", declared)


def undeclared(folder: str, declared: set[str]) -> set[str]:
    """Imports of a folder that no declared distribution provides."""
    import sys

    ours = {"api", "dataplane", "headrace", "native", "reports", "migrations"}
    owners = importlib.metadata.packages_distributions()
    missing = set()
    for name in imported(folder) - ours - sys.stdlib_module_names:
        provides = {distribution_name(THROUGH.get(name, o)) for o in owners.get(name, [name])}
        if not provides & declared:
            missing.add(name)
    return missing


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_a_lock_file_pins_with_hashes_and_names_no_registry(lock: Path) -> None:
    body = lock.read_text()
    assert "://" not in body
    pins = re.findall(r"^[\w.-]+(?:\[[\w,]+\])?==\S+.*$", body, flags=re.M)
    assert pins
    for block in re.split(r"^(?=[\w.-]+(?:\[[\w,]+\])?==)", body, flags=re.M)[1:]:
        assert "--hash=sha256:" in block, block.partition("\n")[0]


def test_every_declared_dependency_is_locked() -> None:
    locked = {
        distribution_name(line)
        for line in (ROOT / "requirements" / "dev.txt").read_text().split("\n")
        if re.match(r"[\w.-]+==", line)
    }
    declared = {distribution_name(requirement) for requirement in PROJECT["dependencies"]}
    assert declared <= locked


def test_every_verb_named_in_the_readme_is_in_the_makefile() -> None:
    verbs = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), flags=re.M))
    named = set(re.findall(r"`make ([a-z]+)", (ROOT / "README.md").read_text()))
    assert named
    assert named <= verbs
