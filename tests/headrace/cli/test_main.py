"""Verbs, suggestions, exit codes, and how a command line ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from headrace import errors
from headrace.cli.main import exit_code_of
from headrace.cli.output import Printer
from headrace.client import Client
from tests.headrace.cli.conftest import Run
from tests.headrace.scripted_api import ScriptedApi, problem
from tests.headrace.scripted_node import ScriptedNode


@pytest.mark.parametrize(
    ("typed", "meant"), [(["topik"], "topic"), (["topic", "creat", "x"], "create")]
)
def test_a_wrong_verb_is_answered_with_the_right_one(
    headrace: Run, typed: list[str], meant: str
) -> None:
    done = headrace(*typed)
    assert done.code == 2
    assert f'Did you mean "{meant}"?' in done.err
    assert done.out == ""


def test_a_verb_of_the_server_says_how_to_get_it(
    headrace: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: ())
    done = headrace("up", "--dir", "x", "extra")
    assert done.code == 1
    assert "headrace-server" in done.err


def test_help_lists_every_verb_without_importing_one(headrace: Run) -> None:
    out = headrace("--help").out
    assert all(verb in out for verb in ("topic", "consume", "usage", "up", "down"))
    assert "headrace topic create orders" in out


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.TopicNotFound("x"), 3),
        (errors.Unauthenticated("x"), 4),
        (errors.AccessDenied("x"), 4),
        (errors.Conflict("x"), 5),
        (errors.QuotaExceeded("x"), 6),
        (errors.Throttled("x"), 6),
        (errors.Unreachable("x"), 7),
        (errors.DeadlineExceeded("x"), 7),
        (errors.Invalid("x"), 8),
        (errors.StartRequired("x"), 8),
        (errors.CorruptPartition("x"), 1),
    ],
)
def test_errors_have_exit_codes(error: errors.HeadraceError, code: int) -> None:
    assert exit_code_of(error) == code


def test_an_error_of_the_api_is_one_sentence_on_stderr(headrace: Run, api: ScriptedApi) -> None:
    api.answers = [problem(401, "UNAUTHENTICATED", "The key is not known")]
    done = headrace("topic", "list", "-o", "json")
    assert (done.code, done.out) == (4, "")
    assert done.err.startswith("error: The key is not known.")


def test_an_existing_topic_is_exit_code_5_unless_that_is_fine(
    headrace: Run, api: ScriptedApi
) -> None:
    api.reads_until_ready = 0
    assert headrace("topic", "create", "orders").code == 0
    assert headrace("topic", "create", "orders").code == 5
    assert headrace("topic", "create", "orders", "--if-not-exists").code == 0


def test_topic_create_passes_its_wish(headrace: Run, api: ScriptedApi) -> None:
    headrace(
        "topic", "create", "s/t", "--retention", "7d", "--codec", "lz4", "--no-wait",
        "--set", "segment_bytes=1048576", "--set", "deletion_protection=true",
    )  # fmt: skip
    assert api.seen[0].body["spec"] == {
        "retention_ms": "604800000",
        "codec": "lz4",
        "segment_bytes": "1048576",
        "deletion_protection": True,
    }


def test_a_missing_topic_is_exit_code_3(headrace: Run) -> None:
    assert headrace("topic", "describe", "nope").code == 3
    assert headrace("consume", "nope", "-e").code == 3


def test_colour_follows_the_conventions(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not Printer(None).color
    monkeypatch.setenv("CLICOLOR_FORCE", "1")
    assert Printer(None).color
    monkeypatch.setenv("NO_COLOR", "1")
    assert not Printer(None).color
    assert Printer(None, "always").color


def command(node: ScriptedNode, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "headrace.cli", "--bootstrap", node.address, *arguments]


def environ(tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "XDG_CONFIG_HOME": str(tmp_path), "PYTHONPATH": os.getcwd()}


def test_ctrl_c_ends_with_130_and_commits_what_was_printed(
    node: ScriptedNode, client: Client, tmp_path: Path
) -> None:
    client.topic("single").send_many([b"a", b"b"])
    running = subprocess.Popen(
        command(node, "consume", "single", "-g", "g", "--from", "start", "-o", "jsonl"),
        env=environ(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert running.stdout is not None
    assert running.stdout.readline()
    assert running.stdout.readline()
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=20)
    assert (running.returncode, err) == (130, b"")
    assert list(node.logs["single", 0].committed.values()) == [2]


def test_a_reader_that_has_had_enough_is_no_error(
    node: ScriptedNode, client: Client, tmp_path: Path
) -> None:
    client.topic("single").send_many([bytes(1000).replace(b"\0", b"x")] * 2000)
    line = " ".join(command(node, "consume", "single", "-e", "-o", "jsonl"))
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f"{line} | head -n 1"],
        env=environ(tmp_path),
        capture_output=True,
        check=False,
        timeout=30,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.count(b"\n") == 1


def test_a_program_that_forgets_to_close_still_delivers(node: ScriptedNode, tmp_path: Path) -> None:
    code = (
        "import headrace\n"
        f"client = headrace.connect(bootstrap={node.address!r})\n"
        "producer = client.producer(linger='10s')\n"
        "producer.send_nowait('single', b'kept')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environ(tmp_path),
        capture_output=True,
        check=False,
        timeout=30,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert node.values("single") == [b"kept"]
