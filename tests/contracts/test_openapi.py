"""REST's contract is committed, equals the app, and is fit for generated clients."""

import json
import subprocess
import sys
from pathlib import Path
from typing import TypedDict

import pytest

ROOT = Path(__file__).resolve().parents[2]
COMMITTED = ROOT / "openapi" / "control-plane.json"
VERBS = {"get", "put", "post", "patch", "delete"}


class Operation(TypedDict, total=False):
    """What is looked at here."""

    operationId: str
    responses: dict[str, object]


@pytest.fixture(scope="module")
def generated() -> str:
    """The contract as the app describes itself."""
    done = subprocess.run(
        [sys.executable, "-m", "api", "openapi"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def operations(generated: str) -> dict[str, Operation]:
    """Every operation by `VERB /path`."""
    paths: dict[str, dict[str, Operation]] = json.loads(generated)["paths"]
    return {
        f"{verb.upper()} {path}": operation
        for path, verbs in paths.items()
        for verb, operation in verbs.items()
        if verb in VERBS
    }


def test_the_committed_contract_is_what_the_app_says(generated: str) -> None:
    assert COMMITTED.read_text() == generated, "run `make openapi` and read the difference"


def test_operation_ids_are_unique(operations: dict[str, Operation]) -> None:
    ids = [operation["operationId"] for operation in operations.values()]
    assert sorted(ids) == sorted(set(ids))


def test_every_operation_says_what_success_looks_like(operations: dict[str, Operation]) -> None:
    silent = [
        name
        for name, operation in operations.items()
        if not any(status.startswith("2") for status in operation["responses"])
    ]
    assert silent == []
