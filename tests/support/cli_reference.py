"""docs/cli.md from the command tree: `python -m tests.support.cli_reference` writes it.

Owns the page's form; refuses to know any command, so that a new one cannot be forgotten.
"""

from collections.abc import Iterator
from pathlib import Path

import click

from headrace.cli.main import root
from headrace.cli.options import shared

PAGE = Path(__file__).resolve().parents[2] / "docs" / "cli.md"
HEAD = """# Command line

This page is generated from the command tree by `make reference`; a test compares the two. For a
tutorial, see [getting-started.md](getting-started.md).

- Data is written to stdout. Messages, prompts and errors are written to stderr.
- `-o json` and `-o yaml` print the REST representation; 64-bit numbers are strings. Without `-o`,
  objects and lists are printed as tables. Records are printed as a table on a terminal and as
  `jsonl` elsewhere.
- `-o 'template={name}: {spec.partitions}'` prints one line in this form for each object. The fields
  are those of `-o json`; `{field?}` is optional; `\\t` and `\\n` are a tab and a line feed. A
  missing field is an error; an object that the command has changed is then printed as JSON.
- `consume -o jsonl | produce -i jsonl` copies records byte for byte. Bytes that are not UTF-8 are
  encoded as base64.
- Color is used only on a terminal, and not if `NO_COLOR` or `TERM=dumb` is set; `--color` overrides
  this.
- `--watch` refreshes a list or an object until Ctrl-C: in place on a terminal, as one JSON document
  per line elsewhere.
- If the reader of the output exits early (`| head`), the command succeeds.
"""
EXITS = """## Exit codes

| code | meaning |
|---|---|
| 0 | success |
| 1 | failure |
| 2 | invalid command line |
| 3 | not found |
| 4 | permission denied |
| 5 | conflict: the object exists already or has changed |
| 6 | quota or rate limit exceeded |
| 7 | service unreachable or deadline exceeded |
| 8 | invalid argument |
| 9 | some records failed; the count is on stderr |
| 130 | interrupted |
"""


def leaves(group: click.Group, above: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Every command that does something, with its words."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from leaves(command, (*above, name))
        else:
            yield " ".join((*above, name)), command


def page() -> str:
    """The whole page."""
    common: set[str | None] = {option.name for option in shared()}
    parts = [
        HEAD,
        EXITS,
        "## Global options\n\nGlobal options can be placed before or after the command.\n",
    ]
    parts.append(_table(shared()))
    parts.append("## Commands\n")
    for words, command in leaves(root):
        parts.append(_section(words, command, common))
    return "\n".join(parts)


def _section(words: str, command: click.Command, common: set[str | None]) -> str:
    own = [p for p in command.params if p.name not in common and isinstance(p, click.Option)]
    arguments = [p.make_metavar(click.Context(command)) for p in command.params if _argument(p)]
    usage = " ".join(["headrace", words, *(["[OPTIONS]"] if own else []), *arguments])
    text = (command.help or "").replace("\b\n", "").strip()
    lines = [f"### {words}", "", f"    {usage}", "", *(each.strip() for each in text.split("\n"))]
    parts = ["\n".join(lines) + "\n", _table(own) if own else "", _block(command.epilog)]
    return "\n".join(part for part in parts if part)


def _block(epilog: str | None) -> str:
    """What follows the options in the help, its columns kept."""
    title, _, rows = (epilog or "").replace("\b\n", "").partition("\n")
    lines = "\n".join(f"    {line.strip()}" for line in rows.split("\n"))
    return f"{title}\n\n{lines}\n" if title else ""


def _argument(parameter: click.Parameter) -> bool:
    return isinstance(parameter, click.Argument)


def _table(options: list[click.Parameter] | list[click.Option]) -> str:
    rows = ["| option | meaning |", "|---|---|"]
    context = click.Context(root)
    for option in options:
        record = option.get_help_record(context)
        assert record is not None
        flags, meaning = (each.replace("|", "\\|") for each in record)
        rows.append(f"| `{flags}` | {meaning} |")
    return "\n".join(rows) + "\n"


def main() -> None:
    """Write the page."""
    PAGE.write_text(page())


if __name__ == "__main__":
    main()
