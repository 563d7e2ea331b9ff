"""Spark sessions for tests, as fixtures: one a process, since its start is what costs."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from reports.session import open_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """local[2], as a run has it."""
    session = open_session("local[2]")
    # Hundreds of small plans: compiling each costs more than running it. test_command.py compiles.
    session.conf.set("spark.sql.codegen.wholeStage", "false")
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def no_profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Removes keys and addresses of the developer from the environment."""
    for name in [name for name in os.environ if name.startswith("HEADRACE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
