"""Who may import whom: the contracts in pyproject.toml, checked on every run of the tests; and that
routes leave the database to services."""

import ast
import subprocess
import sys
from pathlib import Path

from tests.support.source import ROOT, chosen, report, text, tree

STATEMENTS = {"delete", "exists", "func", "insert", "select", "text", "update"}


def test_imports_point_in_the_agreed_direction() -> None:
    command = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [command, "--cache-dir", "build/import-linter"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _asks_the_database(node: ast.AST) -> bool:
    """Whether it takes a word of SQL, or calls a method of a session."""
    match node:
        case ast.ImportFrom(module="sqlalchemy", names=names):
            return bool({each.name for each in names} & STATEMENTS)
        case ast.Call(func=ast.Attribute(value=ast.Name(id="session"))):
            return True
    return False


def test_no_route_asks_the_database() -> None:
    report(
        [
            f"{path}:{node.lineno}: {ast.unparse(node)}; write a function of the domain's service"
            for path in chosen(".py", under="api/")
            if path.name == "routes.py" or "APIRouter(" in text(path)
            for node in ast.walk(tree(path))
            if isinstance(node, ast.stmt | ast.expr) and _asks_the_database(node)
        ]
    )
