"""Output contract: stdout holds data and nothing else; stderr holds everything else.

    format   one object                 a list                      a stream
    table    name: value                aligned columns             one readable line each
    wide     the same, more             the same, more columns      the same, with headers
    json     the REST body              {"items": [..]}             one array
    yaml     the REST body              items:                      one document each
    jsonl    one line                   one line each               one line each
    csv      one row under a header     rows under a header         rows under a header
    name     its name                   one name a line             topic[partition]@offset
    template=TEXT   one line of that form for each (template.py)

What others wrote is printed so that no terminal obeys it and no spreadsheet runs it: sanitize.py.

Without -o: a table on a terminal; else a table without colour for objects and lists, and jsonl for
streams. With --watch and no terminal, json on one line each time.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from headrace.cli.sanitize import guarded, json_of, seen
from headrace.cli.template import PREFIX, Template
from headrace.errors import Invalid

FORMATS = ("table", "wide", "json", "yaml", "jsonl", "csv", "name")

Row = Mapping[str, object]
Name = str | Callable[[Row], object]


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table or a CSV file."""

    title: str
    value: Callable[[Row], object]
    wide: bool = False
    right: bool = False


def path(*names: str) -> Callable[[Row], object]:
    """The value under nested keys, or "" where it is missing."""

    def value(row: Row) -> object:
        found: object = row
        for name in names:
            found = found.get(name) if isinstance(found, Mapping) else None
        return "" if found is None else found

    return value


class Printer:
    """Prints objects and lists; streams ask it only for the format."""

    def __init__(self, output: str | None, color: str = "auto", *, repeated: bool = False) -> None:
        self.terminal = sys.stdout.isatty()
        # Repeated output that does not go to a terminal: one document per line.
        self._one_line = repeated and not self.terminal
        self.output = output or ("json" if self._one_line else None)
        self.color = _colored(color, self.terminal)

    @property
    def for_people(self) -> bool:
        """Whether the format is meant to be read, not parsed."""
        return self.output in (None, "table", "wide")

    def of_stream(self) -> str:
        """The format for a stream of messages."""
        return self.output or ("table" if self.terminal else "jsonl")

    def one(self, row: Row, columns: Sequence[Column], *, name: Name = "name") -> None:
        """Print one object. `name`: the key of its name, or what makes it."""
        output = self.output or "table"
        if output == "json":
            _write(self._json(row))
        elif output == "yaml":
            _write(yaml_of(row))
        elif output in ("table", "wide"):
            shown = [c for c in columns if output == "wide" or not c.wide]
            width = max((len(c.title) for c in shown), default=0)
            _write("".join(f"{c.title.ljust(width)}  {seen(_text(c.value(row)))}\n" for c in shown))
        else:
            self._rows([row], columns, output, name)

    def done(self, row: Row, columns: Sequence[Column], *, name: Name = "name") -> None:
        """Print what was just changed: if its template names what is not there, as JSON, since
        asking again would not bring it back."""
        try:
            self.one(row, columns, name=name)
        except Invalid as error:
            _write(self._json(row))
            error.hint = f"The change was applied and is printed as JSON. {error.hint}"
            raise

    def shows(self, field: str) -> bool:
        """Whether the format prints this field of an object, or everything."""
        if self.output is not None and self.output.startswith(PREFIX):
            return Template(self.output.removeprefix(PREFIX)).names(field)
        return self.output != "name"

    def many(self, rows: Sequence[Row], columns: Sequence[Column], *, name: Name = "name") -> None:
        """Print a list."""
        self.listing({"items": list(rows)}, rows, columns, name=name)

    def listing(
        self, body: Row, rows: Sequence[Row], columns: Sequence[Column], *, name: Name = "name"
    ) -> None:
        """Print a list that REST answers with more than its items: `body` in json and yaml."""
        output = self.output or "table"
        if output == "json":
            _write(self._json(body))
        elif output == "yaml":
            _write(yaml_of(body))
        elif output in ("table", "wide"):
            self._table(rows, [c for c in columns if output == "wide" or not c.wide])
        else:
            self._rows(rows, columns, output, name)

    def _json(self, body: Row) -> str:
        return json_of(body, None if self._one_line else 2) + "\n"

    def _rows(
        self, rows: Iterable[Row], columns: Sequence[Column], output: str, name: Name
    ) -> None:
        if output == "jsonl":
            _write("".join(json_of(row) + "\n" for row in rows))
        elif output.startswith(PREFIX):
            _write("".join(Template(output.removeprefix(PREFIX)).lines(list(rows))))
        elif output == "name":
            name_of = path(name) if isinstance(name, str) else name
            _write("".join(f"{seen(_text(name_of(row)))}\n" for row in rows))
        else:
            _write(csv_of([c.title.lower() for c in columns]))
            for row in rows:
                _write(csv_of([_text(c.value(row)) for c in columns]))

    def _table(self, rows: Sequence[Row], columns: Sequence[Column]) -> None:
        cells = [[seen(_text(c.value(row))) for c in columns] for row in rows]
        if self.terminal and self.color:
            _rich_table(columns, cells)
            return
        widths = [
            max([len(c.title), *(len(line[i]) for line in cells)]) for i, c in enumerate(columns)
        ]
        for line in [[c.title.upper() for c in columns], *cells]:
            padded = (
                text.rjust(width) if column.right else text.ljust(width)
                for text, width, column in zip(line, widths, columns, strict=True)
            )
            _write("  ".join(padded).rstrip() + "\n")


def _rich_table(columns: Sequence[Column], cells: list[list[str]]) -> None:
    # Loaded only for a person at a terminal: it costs more than the rest of the start.
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column.title.upper(), justify="right" if column.right else "left")
    for line in cells:
        table.add_row(*line)
    Console(file=sys.stdout, markup=False, highlight=False).print(table)


def _colored(choice: str, terminal: bool) -> bool:
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("CLICOLOR_FORCE", "0") != "0":
        return True
    return terminal and os.environ.get("TERM") != "dumb"


def _write(text: str) -> None:
    sys.stdout.write(text)


def note(text: str) -> None:
    """A line for people, on stderr."""
    sys.stderr.write(seen(text) + "\n")


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (Mapping, list, tuple)):
        return json_of(value)
    return "" if value is None else str(value)


def csv_of(cells: Sequence[str]) -> str:
    """One CSV line, quoted where it must be (RFC 4180, with a line feed)."""
    # One empty cell alone would be an empty line: no row at all.
    return (",".join(map(_cell, cells)) or '""') + "\n"


def _cell(text: str) -> str:
    text = guarded(text)
    if sys.stdout.isatty():
        text = seen(text)
    # The csv module leaves a lone carriage return bare, and its reader ends the row there.
    if not any(character in text for character in ',"\r\n'):
        return text
    quoted = text.replace('"', '""')
    return f'"{quoted}"'


def yaml_of(value: object) -> str:
    """Block YAML whose scalars are JSON's, which YAML 1.2 reads as they are."""
    return "\n".join(_yaml_lines(value)) + "\n"


def _yaml_lines(value: object) -> list[str]:
    if isinstance(value, Mapping) and value:
        lines: list[str] = []
        for key, item in value.items():
            nested = _yaml_lines(item)
            if _is_block(item):
                lines.append(f"{_scalar(str(key))}:")
                lines += [f"  {line}" for line in nested]
            else:
                lines.append(f"{_scalar(str(key))}: {nested[0]}")
        return lines
    if isinstance(value, (list, tuple)) and value:
        lines = []
        for item in value:
            first, *rest = _yaml_lines(item)
            lines.append(f"- {first}")
            lines += [f"  {line}" for line in rest]
        return lines
    return [_scalar(value)]


def _is_block(value: object) -> bool:
    return isinstance(value, (Mapping, list, tuple)) and bool(value)


def _scalar(value: object) -> str:
    if isinstance(value, str) and value.isidentifier() and value.lower() not in _YAML_WORDS:
        return value
    return json_of(value)


_YAML_WORDS = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
