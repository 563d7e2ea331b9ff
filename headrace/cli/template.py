"""`-o template=TEXT`: one line of an own form for each object.

    headrace topic list -o 'template={name}\\t{spec.partitions}'

`{field}` stands for a field as `-o json` shows it; dots go inward, and a number counts in a list:
`{status.partitions.0.primary}`. A field that no object has is refused; with `?` at its end it may
be missing: `{spec.retention_ms?}`. `\\t` and `\\n` are a tab and a new line, `{{` and `}}` are
braces. A string stands as people see it (sanitize.py), null as nothing, everything else as JSON.
What is no such form is refused before anything is asked for.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from headrace.cli.sanitize import seen
from headrace.errors import Invalid

PREFIX = "template="
HINT = "Example: -o 'template={name}: {status.conditions.0.reason}'"

_PIECES = re.compile(r"\{\{|\}\}|\{[^{}]*\}|[^{}\\]+|\\.|.", re.DOTALL)
_FIELD = re.compile(r"([A-Za-z_][\w-]*(?:\.[\w-]+)*)(\??)")
_ESCAPES = {"{{": "{", "}}": "}", r"\t": "\t", r"\n": "\n", "\\\\": "\\"}


class _Missing:
    """No such field here, which is not null."""


_MISSING = _Missing()


@dataclass(frozen=True, slots=True)
class Field:
    """A placeholder: the keys that lead to a value."""

    keys: tuple[str, ...]
    optional: bool = False

    def value(self, row: object) -> object:
        """The value in a row; `_MISSING` where there is none."""
        found = row
        for key in self.keys:
            if isinstance(found, Mapping):
                found = found.get(key, _MISSING)
            elif isinstance(found, (list, tuple)) and key.isdecimal():
                # Lists are of any length: behind the end there is nothing, as there is in null.
                found = found[int(key)] if int(key) < len(found) else None
            elif found is not None:
                return _MISSING
        return found


class Template:
    """A parsed template. Raises Invalid for a text that is none."""

    def __init__(self, text: str) -> None:
        self._pieces = tuple(_parsed(text))

    def names(self, field: str) -> bool:
        """Whether a placeholder stands for this field."""
        return any(isinstance(p, Field) and p.keys == (field,) for p in self._pieces)

    def lines(self, rows: Sequence[Mapping[str, object]]) -> Iterator[str]:
        """One text for each row, ended by a new line. Raises Invalid before the first if there are
        rows and none of them has a field that is named."""
        for piece in self._pieces:
            if isinstance(piece, Field) and rows and not piece.optional:
                _check(piece, rows)
        return (self._line(row) for row in rows)

    def _line(self, row: Mapping[str, object]) -> str:
        return (
            "".join(p if isinstance(p, str) else _text(p.value(row)) for p in self._pieces) + "\n"
        )


def _parsed(text: str) -> Iterator[str | Field]:
    if not text:
        raise Invalid("The template is empty", hint=HINT)
    for piece in _PIECES.findall(text):
        if piece in _ESCAPES:
            yield _ESCAPES[piece]
        elif piece in ("{", "}"):
            raise Invalid(
                f"The template has an unmatched {piece}",
                hint="Write a field as {name}, and a literal brace twice: {{ or }}.",
            )
        elif piece.startswith("{"):
            found = _FIELD.fullmatch(piece[1:-1])
            if found is None:
                raise Invalid(f"{piece} in the template is not a valid field", hint=HINT)
            yield Field(tuple(found[1].split(".")), optional=bool(found[2]))
        else:
            yield piece


def _check(field: Field, rows: Sequence[Mapping[str, object]]) -> None:
    if all(field.value(row) is _MISSING for row in rows):
        raise Invalid(
            f"The output has no field {{{'.'.join(field.keys)}}}",
            hint=_nearest(field, rows[0]),
        )


def _nearest(field: Field, row: Mapping[str, object]) -> str:
    # As far inward as the row goes: there is the word that is wrong.
    depth = next(d for d in range(len(field.keys)) if _absent(field, d + 1, row))
    holder = Field(field.keys[:depth]).value(row)
    if not isinstance(holder, Mapping):
        return f"{'.'.join(field.keys[:depth])} has no fields. Use -o json to see all fields."
    near = difflib.get_close_matches(field.keys[depth], list(holder), n=1)
    meant = f"Did you mean {'.'.join([*field.keys[:depth], near[0]])}? " if near else ""
    there = ", ".join(holder)
    return f"{meant}Available fields: {there}. Mark an optional field with ?: {{name?}}"


def _absent(field: Field, depth: int, row: Mapping[str, object]) -> bool:
    return Field(field.keys[:depth]).value(row) is _MISSING


def _text(value: object) -> str:
    if value is None or value is _MISSING:
        return ""
    if isinstance(value, str):
        return seen(value)
    return seen(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
