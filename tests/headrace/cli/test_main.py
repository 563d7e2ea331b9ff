"""Verbs, suggestions, exit codes, and how a command line ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from headrace import errors
from headrace.cli.main import exit_code_of
from headrace.cli.messages import duration_of
from headrace.cli.output import Printer
from headrace.cli.topic_spec import SETTINGS
from headrace.client import Client
from tests.headrace.cli.conftest import Run
from tests.headrace.scripted_api import NOW, ScriptedApi, problem
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


def test_what_the_machine_refuses_is_said_in_a_line(headrace: Run, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = headrace("up", "--dir", str(tmp_path / "file" / "data"), "--port", "0")
    assert (done.code, done.out) == (1, "")
    assert done.err == f"error: {tmp_path}/file/data: Not a directory.\n"


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


def test_a_call_that_waits_for_an_answer_says_for_whom_and_until_when(
    headrace: Run, api: ScriptedApi, node: ScriptedNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (
        headrace("topic", "list").err
        == "No topics found. Create one with: headrace topic create NAME\n"
    )
    monkeypatch.setattr("headrace.transport.io_thread.SILENCE_SECONDS", 0.0)
    assert f"no answer from {api.url} yet, retrying until " in headrace("topic", "list").err
    line = f"no answer from {node.address} yet, retrying until "
    assert line in headrace("consume", "single", "-e").err


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


@pytest.mark.parametrize(
    ("switch", "desired"),
    [
        ("--paused", {"paused": True}),
        ("--no-paused", {"paused": False}),
        ("--no-managed", {"managed": False}),
        ("--managed", {"managed": True}),
    ],
)
def test_topic_alter_pauses_and_resumes(
    headrace: Run, api: ScriptedApi, switch: str, desired: dict[str, bool]
) -> None:
    headrace("topic", "create", "orders", "--no-wait")
    assert headrace("topic", "alter", "orders", switch, "--no-wait").code == 0
    assert api.seen[-1].body["spec"] == desired


def test_a_missing_topic_is_exit_code_3(headrace: Run) -> None:
    assert headrace("topic", "describe", "nope").code == 3
    assert headrace("consume", "nope", "-e").code == 3


@pytest.mark.parametrize(
    "arguments",
    [["topic", "describe", "singel"], ["consume", "singel", "-e"], ["produce", "singel"]],
)
def test_a_missing_topic_is_one_sentence_with_the_nearest_name_whoever_missed_it(
    headrace: Run, arguments: list[str]
) -> None:
    headrace("topic", "create", "single", "--no-wait")
    done = headrace(*arguments, stdin=b"a\n")
    assert done.code == 3
    assert done.err == (
        'error: Topic "singel" does not exist. Did you mean "single"? '
        "Create it: headrace topic create singel. (TOPIC_NOT_FOUND)\n"
    )


def test_a_fault_is_named_by_what_was_typed(headrace: Run, api: ScriptedApi) -> None:
    faults = {
        "#/name": "letters, digits, . _ and -",
        "#/spec/partitions": "less than or equal to 1024",
        "#/spec/segment_bytes": "at least 1048576",
    }
    said = "; ".join(f"{at[2:].replace('/', '.')}: {fault}" for at, fault in faults.items())
    status, body = problem(400, "INVALID_REQUEST", f"{said}.")
    errors = [{"pointer": at, "code": "X", "detail": fault} for at, fault in faults.items()]
    api.answers = [(status, {**body, "errors": errors, "hint": "/openapi.json"})]
    done = headrace("topic", "create", "a,b")
    assert done.err.startswith(
        "error: NAME: letters, digits, . _ and -; --partitions: less than or equal to 1024; "
        "--set segment_bytes: at least 1048576. (INVALID_REQUEST"
    )
    # What came by --set goes by it: the flag takes another unit.
    status, body = problem(400, "INVALID_REQUEST", "spec.retention_ms: at least 60000.")
    errors = [{"pointer": "#/spec/retention_ms", "code": "X", "detail": "at least 60000"}]
    api.answers = [(status, {**body, "errors": errors})]
    done = headrace("topic", "create", "a", "--set", "retention_ms=7")
    assert done.err.startswith("error: --set retention_ms: at least 60000. (")


@pytest.mark.parametrize(
    ("setting", "fault"),
    [
        ("retention_ms=7d", "retention_ms=7d: the value must be milliseconds from 1, or unlimited"),
        ("paused=yes", "paused=yes: the value must be true or false"),
        ("codec=gzip", "codec=gzip: the value must be none, lz4 or zstd"),
        ("partitions=-1", "partitions=-1: the value must be 1 to 1024; can only increase"),
        ("segment_byte=1", "segment_byte: no such setting. Did you mean segment_bytes?"),
        ("color=red", "color: no such setting. Use one of: partitions, replication_factor, "),
    ],
)
def test_a_setting_is_checked_before_a_request_is_sent(
    headrace: Run, api: ScriptedApi, setting: str, fault: str
) -> None:
    done = headrace("topic", "create", "a", "--set", setting)
    assert (done.code, api.seen) == (8, [])
    assert done.err.startswith(f"error: --set {fault}")


@pytest.mark.parametrize("verb", ["create", "alter"])
def test_help_lists_every_setting(headrace: Run, verb: str) -> None:
    lines = headrace("topic", verb, "--help").out.splitlines()
    listed = lines[lines.index("  Settings for --set:") + 1 :]
    assert [line.split()[0] for line in listed] == [each.name for each in SETTINGS]


def test_describe_shows_every_setting(headrace: Run, api: ScriptedApi) -> None:
    api.reads_until_ready = 0
    headrace("topic", "create", "orders", "--set", "max_message_bytes=4096")
    shown = dict(
        line.split(maxsplit=1)
        for line in headrace("topic", "describe", "orders").out.splitlines()
        if len(line.split()) == 2
    )
    names = {each.name for each in SETTINGS} - {"retention_ms"} | {"retention"}
    assert names <= shown.keys()
    assert (shown["max_message_bytes"], shown["deletion_protection"]) == ("4096", "no")
    assert (shown["retention"], shown["min_retention_ms"]) == ("7d", "0")


def test_a_partition_and_a_group_are_refused_in_flags(headrace: Run) -> None:
    done = headrace("consume", "orders", "-p", "0", "-g", "readers")
    assert (done.code, "pass -p or -g, not both" in done.err) == (2, True)


def test_a_missing_stream_says_the_verb_that_makes_it(headrace: Run, api: ScriptedApi) -> None:
    status, body = problem(404, "STREAM_NOT_FOUND", "There is no stream billing")
    api.answers = [(status, {**body, "hint": "Create it with POST /v1/streams"})]
    done = headrace("topic", "create", "billing/orders")
    assert done.code == 3
    assert "headrace stream create billing" in done.err
    assert "POST" not in done.err


def test_a_retention_is_a_duration_or_is_told_how_to_be_one(headrace: Run) -> None:
    done = headrace("topic", "create", "orders", "--retention", "7 days")
    assert done.code == 8
    assert "--retention 7 days is not a duration" in done.err
    assert '"7d"' in done.err
    assert "(INVALID_ARGUMENT)" in done.err
    assert '"7d"' in headrace("topic", "create", "--help").out


def test_lists_name_topics_whole_and_show_retention_as_it_is_typed(headrace: Run) -> None:
    headrace("topic", "create", "billing/orders", "--no-wait")
    assert headrace("topic", "list", "-o", "name").out == "billing/orders\n"
    assert " 7d " in headrace("topic", "list").out


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [("604800000", "7d"), ("5400000", "90m"), ("1500", "1500ms"), ("unlimited", "unlimited")],
)
def test_a_duration_is_exact_in_its_largest_unit(milliseconds: str, text: str) -> None:
    assert duration_of(milliseconds) == text


def test_a_meter_that_is_none_is_told_by_its_flag(headrace: Run, api: ScriptedApi) -> None:
    status, body = problem(400, "INVALID_REQUEST", 'meter: "foo" is not one of ingress_bytes.')
    errors = [{"pointer": "?meter", "code": "X", "detail": '"foo" is not one of ingress_bytes'}]
    api.answers = [(status, {**body, "errors": errors})]
    done = headrace("usage", "--meter", "foo")
    assert done.code == 8
    assert done.err.startswith('error: --meter: "foo" is not one of ingress_bytes.')


def test_a_report_that_is_waited_for_tells_its_states_and_where_its_page_is(headrace: Run) -> None:
    done = headrace("report", "run", "usage", "--wait")
    assert done.err.splitlines() == [
        "run_1 queued",
        "run_1 succeeded",
        "/reports/usage/abc/usage.html",
    ]


def test_amounts_have_a_currency_and_quantities_a_unit(headrace: Run) -> None:
    amount = headrace("report", "run", "usage", "--wait", "-o", "csv").out.splitlines()
    cells = dict(zip(amount[0].split(","), amount[1].split(","), strict=True))
    assert (cells["amount"], cells["currency"]) == ("0.000000047", "EUR")
    for output in ("table", "csv"):
        text = headrace("usage", "-o", output).out.replace(",", " ")
        assert "1024 B 0.000000047 EUR" in " ".join(text.split())


def test_usage_ends_with_its_total_and_how_costs_are_rounded(headrace: Run) -> None:
    headrace("report", "run", "usage", "--wait")
    total, source, rounding = headrace("usage").err.splitlines()
    assert total == "Total: 0.000000047 EUR"
    assert source == f"Computed at {NOW}. Later usage appears in the next report."
    assert rounding.startswith("The cost of each row is rounded to 9 decimal places. An invoice")


def test_describe_asks_for_the_figures_of_now(headrace: Run, api: ScriptedApi) -> None:
    headrace("topic", "create", "orders", "--no-wait")
    headrace("topic", "describe", "orders")
    assert api.seen[-1].query == {"live": "true"}


def test_verbs_that_do_not_exist_are_not_listed(headrace: Run) -> None:
    listed = headrace("--help").out
    assert "pki" not in listed
    assert headrace("pki").code == 2


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
    _, err = running.communicate(timeout=120)
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
        timeout=120,
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
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert node.values("single") == [b"kept"]
