"""--watch: again and again until Ctrl-C, a screen for people, lines for programs."""

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

from tests.headrace.cli.conftest import Run
from tests.headrace.scripted_api import ScriptedApi
from tests.headrace.scripted_node import ScriptedNode


def command(api: ScriptedApi, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "headrace.cli", "--api-url", api.url, *arguments]


def environ(tmp_path: Path) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("HEADRACE_")}
    return own | {"XDG_CONFIG_HOME": str(tmp_path), "PYTHONPATH": os.getcwd()}


def test_each_look_is_one_json_document_a_line_and_ctrl_c_ends_it(
    headrace: Run, api: ScriptedApi, tmp_path: Path
) -> None:
    headrace("topic", "create", "orders", "--no-wait")
    running = subprocess.Popen(
        command(api, "topic", "list", "--watch=50ms"),
        env=environ(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert running.stdout is not None
    looks = [json.loads(running.stdout.readline()) for _ in range(3)]
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=120)
    assert [look["items"][0]["name"] for look in looks] == ["orders"] * 3
    assert (running.returncode, err) == (130, b"")


def test_a_terminal_is_repainted(headrace: Run, api: ScriptedApi, tmp_path: Path) -> None:
    headrace("topic", "create", "orders", "--no-wait")
    ours, theirs = pty.openpty()
    running = subprocess.Popen(
        command(api, "topic", "list", "--watch=50ms"),
        env=environ(tmp_path) | {"NO_COLOR": "1", "TERM": "xterm"},
        stdout=theirs,
        stderr=subprocess.PIPE,
    )
    os.close(theirs)
    shown = b""
    while shown.count(b"\x1b[H\x1b[2J") < 2:
        shown += os.read(ours, 4096)
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=120)
    os.close(ours)
    assert b"default/orders" in shown
    # NO_COLOR: the screen is cleared, and nothing is coloured.
    assert b"\x1b[" not in shown.replace(b"\x1b[H\x1b[2J", b"")


def test_a_bare_watch_eats_no_argument(headrace: Run, api: ScriptedApi, tmp_path: Path) -> None:
    headrace("topic", "create", "orders", "--no-wait")
    running = subprocess.Popen(
        command(api, "topic", "describe", "--watch", "orders"),
        env=environ(tmp_path),
        stdout=subprocess.PIPE,
    )
    assert running.stdout is not None
    assert json.loads(running.stdout.readline())["name"] == "orders"
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=120)
    assert running.returncode == 130


def test_a_reader_of_looks_that_has_had_enough_is_no_error(
    api: ScriptedApi, tmp_path: Path
) -> None:
    line = " ".join(command(api, "topic", "list", "--watch=50ms"))
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f"{line} | head -n 1"],
        env=environ(tmp_path),
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0
    assert json.loads(done.stdout) == {"items": []}


def test_watching_is_bounded(headrace: Run, node: ScriptedNode) -> None:
    done = headrace("topic", "list", "--watch=1ms")
    assert done.code == 8
    assert "--watch=1ms is too short" in done.err
