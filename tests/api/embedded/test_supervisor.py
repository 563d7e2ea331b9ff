"""Children: started again after a back-off, ended together, told apart from strangers."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from api.embedded.directory import Directory
from api.embedded.installation import Installation
from api.embedded.ports import Ports
from api.embedded.processes import running, start_time
from api.embedded.supervisor import (
    BACKOFF_FIRST_SECONDS,
    BACKOFF_MAX_SECONDS,
    REFUSED_SECONDS,
    Child,
    Supervisor,
)


def test_a_child_that_dies_is_started_again_after_a_growing_pause(tmp_path: Path) -> None:
    child = Child("node", ["/bin/false"], tmp_path / "node.log")
    now, pauses = 0.0, []
    for _ in range(4):
        assert child.tend(now)
        assert child.process is not None
        child.process.wait()
        assert child.tend(now)
        pauses.append(child.start_after - now)
        assert not child.tend(child.start_after - 0.001)
        now = child.start_after
    assert pauses == sorted(pauses)
    assert pauses[0] == 2 * BACKOFF_FIRST_SECONDS
    assert pauses[-1] <= BACKOFF_MAX_SECONDS
    assert child.restarts == 4


def test_a_child_that_was_healthy_is_started_again_soon(tmp_path: Path) -> None:
    child = Child("node", ["/bin/false"], tmp_path / "node.log", failures=9)
    child.tend(0.0)
    assert child.process is not None
    child.process.wait()
    child.tend(100.0)
    assert child.start_after == 100.0 + BACKOFF_FIRST_SECONDS


def ended(tmp_path: Path, script: str, *times: float) -> Child:
    """A child whose process was found ended at those times."""
    child = Child("node", ["/bin/sh", "-c", script], tmp_path / "node.log")
    for now in times:
        assert child.tend(now)
        assert child.process is not None
        child.process.wait()
        assert child.tend(now)
        child.start_after = 0.0
    return child


def test_a_child_that_keeps_refusing_to_start_is_believed_and_quoted(tmp_path: Path) -> None:
    refuses = "echo early; echo node.shrds is no key; exit 2"
    child = ended(tmp_path, refuses, 1.0, REFUSED_SECONDS)
    assert child.refusal(REFUSED_SECONDS) is None  # The node before may still be draining.
    said = "The node does not start: node.shrds is no key"
    assert child.refusal(1.0 + REFUSED_SECONDS) == said


def test_a_child_that_fails_otherwise_is_tried_for_ever(tmp_path: Path) -> None:
    assert ended(tmp_path, "exit 1", 0.0, 99.0).refusal(99.0) is None


def test_a_child_that_does_not_stop_is_killed(tmp_path: Path) -> None:
    child = Child("node", ["tail", "-f", "/dev/null"], tmp_path / "node.log")
    child.tend(0.0)
    child.end(deadline=0.0)
    assert child.process is not None
    assert child.process.poll() is not None


def test_what_a_child_prints_is_in_its_log(tmp_path: Path) -> None:
    child = Child("node", ["/bin/echo", "hello"], tmp_path / "node.log")
    child.tend(0.0)
    assert child.process is not None
    child.process.wait()
    assert (tmp_path / "node.log").read_text() == "hello\n"


def test_a_state_that_cannot_be_written_ends_nobody_and_is_told_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "later"
    supervisor = Supervisor(Installation(Directory(folder), Ports(1, 2, 3)), lambda: None)
    assert not supervisor.write_state()
    assert not supervisor.write_state()
    assert capsys.readouterr().err.count("up.json cannot be written: ") == 1
    folder.mkdir()
    assert supervisor.write_state()
    assert json.loads((folder / "up.json").read_text())["state"] == "starting"


def test_a_state_file_of_a_process_that_ended_speaks_of_nobody(tmp_path: Path) -> None:
    process = subprocess.Popen(["/bin/true"])
    process.wait()
    assert running(_state(tmp_path, process.pid, "1")) is None


def test_a_state_file_with_a_number_that_was_given_to_another_speaks_of_nobody(
    tmp_path: Path,
) -> None:
    assert running(_state(tmp_path, os.getpid(), "1")) is None
    found = running(_state(tmp_path, os.getpid(), start_time(os.getpid())))
    assert found is not None
    assert found.api_url == "http://here"


def _state(folder: Path, pid: int, began: str) -> Path:
    path = folder / "up.json"
    state = {
        "state": "ready",
        "api_url": "http://here",
        "bootstrap": "here",
        "supervisor": {"pid": pid, "start_time": began},
    }
    path.write_text(json.dumps(state))
    return path
