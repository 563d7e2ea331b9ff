"""Reading our own source: which files a person wrote, and what stands in them.

Serves the tests about the repository itself. Refuses generated files, builds and caches.
"""

import ast
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

FOLDERS_SKIPPED = {
    ".git", ".headrace", ".hypothesis", ".import_linter_cache", ".mypy_cache", ".pytest_cache",
    ".ruff_cache", ".venv", "__pycache__", "build", "dist", "node_modules", "spark-warehouse",
}  # fmt: skip
GENERATED = re.compile(r"(_pb2(_grpc)?\.pyi?|\.egg-info/.*|_(engine|engine_sim|codec)\.c)$")
BINARY = {".so", ".o", ".bin", ".parquet", ".gz", ".zip", ".png", ".pyc", ".golden"}
CODE = {".py", ".pyi", ".c", ".h", ".sh", ".proto", ".toml", ".service"}

SEEDS = "tests/data/fuzz/"  # bytes of fuzzers, under names without an ending


def _skipped(folder: str) -> bool:
    return folder in FOLDERS_SKIPPED or folder.endswith(".egg-info")


@cache
def files() -> tuple[Path, ...]:
    """Every file that a person wrote, relative to the root."""
    found = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = sorted(f for f in folders if not _skipped(f))
        for name in sorted(names):
            path = Path(folder, name).relative_to(ROOT)
            if path.suffix in BINARY or path.as_posix().startswith(SEEDS) or name == ".git":
                continue
            if not GENERATED.search(path.as_posix()):
                found.append(path)
    return tuple(found)


def below(folder: Path, pattern: str) -> list[Path]:
    """Files below a folder that match, except in the folders that tools leave: a build, a cache."""
    return sorted(
        path
        for path in folder.rglob(pattern)
        if path.is_file()
        and not any(_skipped(part) for part in path.relative_to(folder).parts[:-1])
    )


@cache
def text(path: Path) -> str:
    """What the file says."""
    return (ROOT / path).read_text(encoding="utf-8")


def chosen(*suffixes: str, under: str = "") -> list[Path]:
    """Files with one of these endings, below a folder."""
    return [p for p in files() if p.suffix in suffixes and p.as_posix().startswith(under)]


@cache
def tree(path: Path) -> ast.Module:
    """The file's syntax tree."""
    return ast.parse(text(path), filename=str(path))


@cache
def c_code(path: Path) -> str:
    """C without comments and strings, line for line."""

    def blank(match: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", match.group())

    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', blank, text(path), flags=re.S)


def numbered(body: str) -> Iterator[tuple[int, str]]:
    """Lines with their numbers."""
    return enumerate(body.split("\n"), start=1)


def report(findings: list[str]) -> None:
    """Fail with all findings, one a line."""
    if findings:
        pytest.fail("\n".join(findings), pytrace=False)
