"""What others wrote, printed (X16, X17): no terminal obeys it, no spreadsheet runs it, and programs
read back exactly what it was. And lines and arguments that are no text are refused in one sentence.
"""

import csv
import io
import json
import re

import pytest

from headrace.cli.commands.produce import LINE_BYTES_MAX
from headrace.cli.sanitize import guarded, json_of, seen
from headrace.client import Client
from tests.headrace.cli.conftest import Run
from tests.headrace.scripted_api import ScriptedApi, named, problem

OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
HOSTILE = {
    "clear the screen": "a\x1b[2Jb",
    "set the title": "\x1b]0;owned\x07",
    "answer back": "\x1b[6n\x05",
    "eight-bit escapes": "\x9b2J\x9d0;owned\x9c",
    "go back over it": "safe\b\b\b\bevil\r",
    "another line": "a\n1@0  00:00:00.000000  forged",
    "other lines": "a\u2028b\u2029c\x85d\x0be",
    "right to left": "\u202egnp.exe\u2066",
    "a shell": "$(id)`id`",
    "a format": "%s%n%x {0} {}",
    "markup": "[bold red]a[/]",
}
FORMATS = ["table", "wide", "name", "json", "jsonl", "yaml", "csv"]


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("output", FORMATS)
def test_a_record_moves_no_terminal(
    headrace: Run, client: Client, hostile: str, output: str
) -> None:
    text = HOSTILE[hostile]
    client.topic("single").send(text, key=text, headers={"h": text})
    out = headrace("consume", "single", "-e", "-o", output).out
    if output != "csv":  # CSV quotes what it holds; to a terminal it is escaped as well.
        assert not OBEYED.search(out), ascii(out)
    if output in ("table", "wide", "name", "jsonl"):
        assert out.count("\n") == 1


@pytest.mark.parametrize("hostile", HOSTILE)
def test_programs_read_back_exactly_what_was_sent(
    headrace: Run, client: Client, hostile: str
) -> None:
    text = HOSTILE[hostile]
    client.topic("single").send(text)
    lines = headrace("consume", "single", "-e", "-o", "jsonl").out.splitlines()
    assert [json.loads(line)["value"] for line in lines] == [text]
    (document,) = json.loads(headrace("consume", "single", "-e", "-o", "json").out)
    assert document["value"] == text
    _, row = csv.reader(io.StringIO(headrace("consume", "single", "-e", "-o", "csv").out, ""))
    assert row[5] == text


def test_csv_on_a_terminal_is_escaped_too(
    headrace: Run, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.topic("single").send(HOSTILE["clear the screen"])
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert not OBEYED.search(headrace("consume", "single", "-e", "-o", "csv").out)


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("output", ["table", "wide", "name", "json", "yaml", "jsonl"])
def test_a_name_moves_no_terminal(
    headrace: Run, api: ScriptedApi, hostile: str, output: str
) -> None:
    api.projects.append(named("prj_1", HOSTILE[hostile]))
    done = headrace("project", "list", "-o", output)
    assert done.code == 0, done.err
    assert not OBEYED.search(done.out), ascii(done.out)


def test_an_error_moves_no_terminal(headrace: Run, api: ScriptedApi) -> None:
    for text in HOSTILE.values():
        api.answers.append(problem(400, "INVALID_REQUEST", text))
        done = headrace("topic", "list")
        assert done.code == 8
        assert not OBEYED.search(done.err), ascii(done.err)
        assert done.err.count("\n") == 1


FORMULAS = [
    '=HYPERLINK("http://evil","open")',
    "=cmd|' /C calc'!A0",
    "+1+1",
    "-1-1",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
    "'=1",
]


@pytest.mark.parametrize("formula", FORMULAS)
def test_a_cell_that_begins_like_a_formula_is_text(
    headrace: Run, client: Client, api: ScriptedApi, formula: str
) -> None:
    client.topic("single").send(formula, key=formula)
    out = headrace("consume", "single", "-e", "-o", "csv").out
    _, row = csv.reader(io.StringIO(out, ""))
    assert row[4] == row[5] == f"'{formula}"
    api.projects.append(named("prj_1", formula))
    listed = list(csv.reader(io.StringIO(headrace("project", "list", "-o", "csv").out, "")))
    assert f"'{formula}" in listed[-1]


@pytest.mark.parametrize("cell", ["-5", "+5", "-0.25", "12", "", "a=b", "{}", "[]", "5-6"])
def test_numbers_and_other_text_stay_as_they_are(cell: str) -> None:
    assert guarded(cell) == cell


def test_what_is_shown_says_which_character_it_was() -> None:
    assert seen("a\x1b[2J\n\u202e\tb") == "a\\x1b[2J\\n\\u202e\tb"
    assert json_of({"a": "\x9b\u202e"}, 2) == '{\n  "a": "\\u009b\\u202e"\n}'


LINES = {
    "100,000 brackets": b'{"value":' + b"[" * 100_000,
    "5,000 digits": b'{"value":' + b"9" * 5000 + b"}",
    "half of a pair": b'{"value":"\\ud800"}',
    "half of a pair as a key": b'{"key":"\\ud800","value":"a"}',
    "half of a pair in a header": b'{"value":"a","headers":[["\\ud800","b"]]}',
    "a time of no year": b'{"value":"a","ts":1e400}',
    "a time beyond 64 bits": b'{"value":"a","ts":' + b"9" * 30 + b"}",
    "a value that is no base64": b'{"value_b64":"%%%"}',
    "a list": b"[]",
    "NUL": b"\0",
}


@pytest.mark.parametrize("line", LINES)
def test_a_line_that_is_no_envelope_is_named_without_a_trace(headrace: Run, line: str) -> None:
    done = headrace("produce", "single", "-i", "jsonl", stdin=b'{"value":"1"}\n' + LINES[line])
    assert (done.code, done.out) == (8, "")
    assert "Line 2 of stdin" in done.err
    assert "Traceback" not in done.err


def test_a_line_without_an_end_is_read_no_further_than_a_record_can_be(headrace: Run) -> None:
    done = headrace("produce", "single", stdin=b"one\n" + b"a" * (LINE_BYTES_MAX + 2))
    assert done.code == 8
    assert "Line 2 of stdin: The line exceeds the limit of 64 MiB" in done.err
    assert "1 record before it was stored" in done.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["produce", "single", "-k", "\udcff"],
        ["produce", "\udcff"],
        ["consume", "\udcff", "-e"],
        ["topic", "describe", "\udcff"],
        ["topic", "create", "\udcff"],
        ["explain", "topic/\udcff"],
        ["group", "describe", "\udcff"],
    ],
)
def test_an_argument_that_is_no_text_is_refused_in_one_sentence(
    headrace: Run, arguments: list[str]
) -> None:
    done = headrace(*arguments, stdin=b"a\n")
    assert done.code != 0
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1
    assert "Traceback" not in done.err


def test_a_time_that_no_calendar_has_is_copied_as_a_number(headrace: Run, client: Client) -> None:
    client.topic("single").send("far", timestamp=2**62)
    line = headrace("consume", "single", "-e", "-o", "jsonl").out
    assert json.loads(line)["ts"] == 2**62
    assert headrace("produce", "orders", "-i", "jsonl", "-p", "1", stdin=line.encode()).code == 0
    (copied,) = client.topic("orders").consume(until="end")
    assert copied.timestamp_us == 2**62
    assert headrace("consume", "single", "-e", "-o", "table").code == 0
