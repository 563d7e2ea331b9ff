"""The verbs are the contract with users and CI."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
VERBS = (
    "setup",
    "demo",
    "up",
    "down",
    "test",
    "check",
    "sim",
    "bench",
    "proto",
    "openapi",
    "reference",
)


def make(*arguments: str) -> str:
    """What make prints."""
    done = subprocess.run(
        ["make", "--no-print-directory", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


@pytest.mark.parametrize("verb", VERBS)
def test_make_help_describes_the_verb(verb: str) -> None:
    assert f"make {verb} " in make("help")


def test_ci_runs_check_and_then_the_demo() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    assert 0 < script.index("make --no-print-directory check") < script.index("directory demo")
