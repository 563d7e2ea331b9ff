"""docs/cli.md from the tree of verbs: `python -m tests.support.cli_reference` writes it.

Owns the page's form; refuses to know any verb, so that a new one cannot be forgotten.
"""

from collections.abc import Iterator
from pathlib import Path

import click

from headrace.cli.main import root
from headrace.cli.options import shared

PAGE = Path(__file__).resolve().parents[2] / "docs" / "cli.md"
HEAD = """# Command line

Written from the tree of verbs by `make reference`; a test compares. How to begin:
[getting-started.md](getting-started.md).

- stdout holds data and nothing else; notes, questions and errors are on stderr.
- `-o json` and `-o yaml` have the shape of REST; 64-bit numbers are strings. Without `-o`: tables
  for lists and objects, on a terminal also for records; `jsonl` for records elsewhere.
- `-o 'template={name}: {spec.partitions}'` prints one line of that form for each object; the fields
  are those of `-o json`, `{field?}` may be missing, `\\t` and `\\n` are a tab and a new line. A
  field that is not there is an error; what the verb changed is then printed as JSON.
- `consume -o jsonl | produce -i jsonl` copies byte for byte: what is not UTF-8 stands as base64.
- Colour: only on a terminal, never with `NO_COLOR` or `TERM=dumb`; `--color` decides.
- `--watch` shows a list or an object again and again until Ctrl-C: a screen on a terminal, one JSON
  document a line elsewhere.
- A reader that has had enough (`| head`) is no error.
"""
EXITS = """## Exit codes

| code | meaning |
|---|---|
| 0 | ok |
| 1 | failed |
| 2 | wrong usage |
| 3 | not found |
| 4 | not allowed |
| 5 | conflict: exists already, or changed meanwhile |
| 6 | quota or rate |
| 7 | unreachable, or too late |
| 8 | invalid |
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
    parts = [HEAD, EXITS, "## Options of every verb\n\nBefore it or behind it.\n"]
    parts.append(_table(shared()))
    parts.append("## Verbs\n")
    for words, command in leaves(root):
        parts.append(_section(words, command, common))
    return "\n".join(parts)


def _section(words: str, command: click.Command, common: set[str | None]) -> str:
    own = [p for p in command.params if p.name not in common and isinstance(p, click.Option)]
    arguments = [p.make_metavar(click.Context(command)) for p in command.params if _argument(p)]
    usage = " ".join(["headrace", words, *(["[OPTIONS]"] if own else []), *arguments])
    text = (command.help or "").replace("\b\n", "").strip()
    lines = [f"### {words}", "", f"    {usage}", "", *(each.strip() for each in text.split("\n"))]
    return "\n".join(lines) + "\n" + (f"\n{_table(own)}" if own else "")


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
