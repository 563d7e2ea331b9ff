"""`python -m reports`: the whole run as a worker starts it, and its one line of outcome."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from reports.__main__ import main
from reports.errors import folder_trouble
from reports.input.freeze import freeze
from reports.run import report_of
from tests.reports.building import export
from tests.reports.input.test_freeze import FLIGHTS, closed, produce, publish_usage
from tests.reports.serving import KEY, Log, Node, serving
from tests.reports.test_control import Control, served_control

TOKEN = "hr_run_abcdefghij_secretsecretsecret_check0"


def run_reports(*arguments: str) -> tuple[int, dict[str, object], str]:
    """(exit status, outcome, everything that was printed)."""
    done = subprocess.run(
        [sys.executable, "-m", "reports", *arguments],
        env={**os.environ, "HEADRACE_RUN_TOKEN": TOKEN, "HEADRACE_NODE_KEY": KEY},
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 1, done.stdout + done.stderr
    return done.returncode, json.loads(lines[0]), done.stdout + done.stderr


@pytest.mark.check
def test_a_run_reads_publishes_and_puts_its_result(spark: SparkSession, tmp_path: Path) -> None:
    logs = {FLIGHTS: [Log()], "default/_usage": [Log()]}
    with serving(Node(logs)) as node, served_control() as control:
        publish_usage(node, closed(1, produce(node, 1, 3), 3))
        control.answers = [(200, export().document), (200, {})]
        status, outcome, printed = run_reports(
            *("usage", "--run", "run_1", "--api", control.url, "--bootstrap", node.address),
            *("--uri", str(tmp_path), "--master", "local[1]"),
        )
        options = {"bootstrap": node.address, "key": KEY}
        here = freeze(spark, tmp_path / "here", export(), options)
    assert status == 0, printed
    assert (outcome["outcome"], outcome["run"], outcome["complete"]) == ("published", "run_1", True)
    sent = json.loads(control.asked[1][3])
    assert sent["totals"] == outcome["totals"]
    assert Path(sent["path"], "usage.html").is_file()
    assert json.loads(Path(sent["path"], "manifest.json").read_bytes()) == sent
    # Another JVM, with other settings of the compiler, makes the same bytes.
    assert sent["input_sha256"] == here.sha256
    assert sent["files"] == report_of(spark, tmp_path / "here", here).manifest["files"]
    assert KEY not in printed
    assert TOKEN not in printed


def outcome_of(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    """The one line of standard output."""
    (line,) = capsys.readouterr().out.splitlines()
    outcome: dict[str, object] = json.loads(line)
    return outcome


def test_a_failure_is_one_line_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADRACE_RUN_TOKEN", TOKEN)
    where = ["--uri", str(tmp_path), "--master", "local[1]", "--bootstrap", "127.0.0.1:1"]
    assert main(["usage", *where]) == 2
    assert outcome_of(capsys)["code"] == "EXPORT_MISSING"
    assert main(["usage", *where, "--run", "run_1", "--api", "127.0.0.1"]) == 2
    assert outcome_of(capsys)["code"] == "API_URL_INVALID"
    broken = tmp_path / "export.json"
    broken.write_text("{")
    assert main(["usage", *where, "--export", str(broken)]) == 4
    assert outcome_of(capsys)["code"] == "EXPORT_INVALID"


def test_a_full_disk_is_said_in_words_also_when_it_is_spark_that_met_it() -> None:
    with pytest.raises(OSError, match="No space") as met:
        Path("/dev/full").write_bytes(b"rows")
    for failure in (met.value, RuntimeError("java.io.IOException: No space left on device")):
        error = folder_trouble(failure)
        assert error is not None
        assert (error.code, error.exit_status) == ("FOLDER_NOT_WRITABLE", 5)
        assert "No space left on device" in error.message
    assert folder_trouble(ConnectionRefusedError(111, "refused")) is None


def test_a_refused_run_keeps_the_code_of_the_control_plane(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADRACE_RUN_TOKEN", TOKEN)
    with served_control() as control:
        control.answers = [(401, {"code": "UNAUTHENTICATED", "detail": "the token is used up"})]
        arguments = ["usage", "--run", "run_1", "--api", control.url, "--uri", str(tmp_path)]
        assert main([*arguments, "--master", "local[1]", "--bootstrap", "127.0.0.1:1"]) == 3
    assert isinstance(control, Control)
    assert outcome_of(capsys)["message"] == "the token is used up"
