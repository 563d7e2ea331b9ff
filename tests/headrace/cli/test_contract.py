"""The output contract: every command, every format; stdout is data and nothing else."""

import csv
import io
import json
from pathlib import Path

import pytest

from headrace.cli.main import root
from tests.headrace.cli.conftest import Run
from tests.headrace.scripted_api import ScriptedApi

PUBLISHED = Path(__file__).resolve().parents[2] / "data" / "published"
# One line per command of ours: the golden test fails when a command is missing here.
COMMANDS = {
    "org list": ["org", "list"],
    "org describe": ["org", "describe", "default"],
    "org create": ["org", "create", "NEW"],
    "project list": ["project", "list"],
    "project describe": ["project", "describe", "prj_1"],
    "project create": ["project", "create", "NEW"],
    "project delete": ["project", "delete", "team", "--yes"],
    "stream list": ["stream", "list"],
    "stream describe": ["stream", "describe", "billing"],
    "stream create": ["stream", "create", "NEW"],
    "stream delete": ["stream", "delete", "billing", "--yes"],
    "topic list": ["topic", "list"],
    "topic describe": ["topic", "describe", "known"],
    "topic create": ["topic", "create", "NEW", "--partitions", "2"],
    "topic alter": ["topic", "alter", "known", "--partitions", "2"],
    "topic purge": ["topic", "purge", "known", "--before", "end", "--yes"],
    "topic delete": ["topic", "delete", "known", "--yes"],
    "key list": ["key", "list"],
    "key describe": ["key", "describe", "robot"],
    "key create": ["key", "create", "NEW"],
    "key revoke": ["key", "revoke", "robot", "--yes"],
    "hold create": ["hold", "create", "known", "--case", "NEW", "--reason", "a suit"],
    "hold list": ["hold", "list"],
    "hold get": ["hold", "get", "hold_1"],
    "hold release": ["hold", "release", "hold_1", "--yes"],
    "group list": ["group", "list"],
    "group describe": ["group", "describe", "readers"],
    "group lag": ["group", "lag", "readers"],
    "node list": ["node", "list"],
    "node describe": ["node", "describe", "nd_1"],
    "explain": ["explain", "topic/known"],
    "produce": ["produce", "single"],
    "consume": ["consume", "single", "--from", "start", "-e"],
    "usage": ["usage", "--by", "topic"],
    "retention report": ["retention", "report"],
    "retention plan": ["retention", "plan", "known"],
    "report run": ["report", "run", "usage", "--wait"],
    "report list": ["report", "list"],
    "report verify": ["report", "verify", str(PUBLISHED)],
    "invoice list": ["invoice", "list"],
    "invoice get": ["invoice", "get", "2026-11"],
    "profile list": ["profile", "list"],
    "profile current": ["profile", "current", "--profile", "work"],
    "profile use": ["profile", "use", "work"],
    "profile create": ["profile", "create", "NEW"],
    "config explain": ["config", "explain", "bootstrap"],
    "completion": ["completion", "bash"],
    "version": ["version"],
}
# tests/contracts/test_server_wheel.py runs these, with -o json too.
SERVER_VERBS = {"up", "down"}


@pytest.fixture(autouse=True)
def filled(headrace: Run, api: ScriptedApi) -> None:
    api.reads_until_ready = 0
    headrace("topic", "create", "known")
    headrace("stream", "create", "billing")
    headrace("key", "create", "robot")
    headrace("hold", "create", "known", "--case", "C-1", "--reason", "a suit")
    headrace("profile", "create", "work")
    headrace("produce", "single", stdin=b'first\n{"second": 2}\n')
    headrace("consume", "single", "-g", "readers", "--from", "start", "-n", "1")


def commands_of_the_tree() -> set[str]:
    import click

    context = click.Context(root)
    found: set[str] = set()
    for name in set(root.list_commands(context)) - SERVER_VERBS:
        command = root.get_command(context, name)
        if isinstance(command, click.Group):
            found |= {f"{name} {verb}" for verb in command.list_commands(context)}
        else:
            found.add(name)
    return found


def test_the_list_above_is_the_whole_tree() -> None:
    assert commands_of_the_tree() == set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_json_is_json(headrace: Run, command: str) -> None:
    done = headrace(*COMMANDS[command], "-o", "json", stdin=b"line\n")
    assert done.code == 0, done.err
    assert isinstance(json.loads(done.out), (dict, list))


@pytest.mark.parametrize("command", COMMANDS)
def test_jsonl_is_one_json_document_a_line(headrace: Run, command: str) -> None:
    done = headrace("-o", "jsonl", *COMMANDS[command], stdin=b"line\n")
    assert done.code == 0, done.err
    assert all(isinstance(json.loads(line), dict) for line in done.out.splitlines())


@pytest.mark.parametrize("command", COMMANDS)
def test_csv_has_a_header_and_as_many_cells_in_every_row(headrace: Run, command: str) -> None:
    done = headrace(*COMMANDS[command], "-o", "csv", stdin=b"line\n")
    rows = list(csv.reader(io.StringIO(done.out)))
    assert done.code == 0
    assert len({len(row) for row in rows}) == 1


def filled_again(headrace: Run, command: str) -> None:
    """What a deletion takes away, there again."""
    if command.endswith((" delete", " revoke")):
        kind, _, name, _ = COMMANDS[command]
        headrace(kind, "create", name)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_takes_every_format(headrace: Run, command: str) -> None:
    for output in ("wide", "yaml", "name", "template={name?}"):
        name, *rest = COMMANDS[command]
        again = [f"{output[:4]}{word}" if word == "NEW" else word for word in rest]
        done = headrace(name, *again, "-o", output, stdin=b"line\n")
        assert done.code == 0, done.err
        filled_again(headrace, command)
        assert "\x1b" not in done.out


def test_the_format_may_stand_before_and_after_the_verb(headrace: Run) -> None:
    before = headrace("-o", "json", "topic", "list")
    between = headrace("topic", "-o", "json", "list")
    after = headrace("topic", "list", "-o", "json")
    assert before.out == between.out == after.out
    assert (
        headrace("-o", "table", "version", "-o", "json").out
        == headrace("version", "-o", "json").out
    )


def test_json_of_a_list_is_the_shape_of_rest(headrace: Run) -> None:
    body = json.loads(headrace("topic", "list", "-o", "json").out)
    assert [item["name"] for item in body["items"]] == ["known"]


def test_yaml_of_nested_data_is_block_yaml(headrace: Run) -> None:
    out = headrace("topic", "describe", "known", "-o", "yaml").out
    assert "status:\n  conditions:\n    - type: Ready\n      status: " in out


def test_describe_shows_every_condition_with_its_message(headrace: Run) -> None:
    lines = headrace("topic", "describe", "known", "-o", "table").out.splitlines()
    line = next(each for each in lines if "RetentionEnforced" in each)
    assert line.split(maxsplit=3) == [
        *["RetentionEnforced", "True", "Enforced"],
        "whole segments go",
    ]


def test_notes_for_people_are_on_stderr(headrace: Run) -> None:
    done = headrace("produce", "single", stdin=b"a\nb\n")
    assert done.out == ""
    assert done.err == "2 records stored in single\n"


def test_streams_are_jsonl_when_nobody_looks(headrace: Run) -> None:
    lines = headrace("consume", "single", "-e").out.splitlines()
    assert [json.loads(line)["value"] for line in lines] == ["first", '{"second": 2}']
