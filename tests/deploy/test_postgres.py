"""The database server of the production layout: its files are whole, or made anew."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.production import postgres
from deploy.production.postgres import Server
from headrace.errors import ConfigurationInvalid

# Like the real one, it begins with PG_VERSION and ends with the control file.
INITDB = """#!/bin/sh
mkdir "$2" && echo 15 > "$2/PG_VERSION"
test -e {gate} || kill -9 $$
echo whole > "$2/pg_control"
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """Open to the account that the server runs as, which pytest's folders are not."""
    made = Path(tempfile.mkdtemp(prefix="headrace-initdb-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


def test_files_whose_making_was_killed_are_made_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, gate = folder / "initdb", folder / "gate"
    program.write_text(INITDB.format(gate=gate))
    program.chmod(0o755)
    monkeypatch.setattr(postgres, "DEBIAN", folder)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    server = Server(folder / "postgres", 0)
    with pytest.raises(ConfigurationInvalid):
        server.initialize()
    gate.touch()
    server.initialize()
    assert (folder / "postgres" / "data" / "pg_control").read_text() == "whole\n"
