"""Rows as CSV and JSON: what a value looks like in text.

Owns escaping. A name may be anything its owner typed: a spreadsheet must not run it, so text that
begins like a formula gets an apostrophe in front (and text that begins with an apostrophe too, so
that `unescaped` is exact). JSON needs no such thing. Numbers never pass through a double: int64 and
decimals are strings in JSON, plain digits in CSV.
"""

import csv
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import TextIO

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "'")

Value = str | int | bool | Decimal | datetime | None
Row = Mapping[str, Value]


def text_of(name: str, value: Value) -> str:
    """The value as written in every text format, before any escaping; nothing for none."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        # Not strftime: it writes the year 999 with three digits.
        return value.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"
    if isinstance(value, Decimal):
        return format(value.normalize() if name == "unit_price" else value, "f")
    return str(value)


def escaped(text: str) -> str:
    """Text that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text


def unescaped(cell: str) -> str:
    """What `escaped` was given."""
    return cell[1:] if cell.startswith("'") else cell


class CsvWriter:
    """RFC 4180: CRLF, quotes where needed, a header line."""

    def __init__(self, file: TextIO, columns: Sequence[str]) -> None:
        self._columns = columns
        self._writer = csv.writer(file, lineterminator="\r\n")
        self._writer.writerow(columns)

    def write(self, row: Row) -> None:
        """One line. Only text can be a formula: numbers are ours."""
        self._writer.writerow(
            escaped(value) if isinstance(value, str) else text_of(name, value)
            for name in self._columns
            for value in (row[name],)
        )


class JsonRows:
    """A list of row objects inside a JSON document, one row a line, so that it is written as it is
    read.
    """

    def __init__(self, file: TextIO, columns: Sequence[str]) -> None:
        self._file = file
        self._columns = columns
        self._separator = "\n"

    def write(self, row: Row) -> None:
        """One object; booleans stay booleans, none is null, everything else is a string."""
        document = {
            name: value if value is None or isinstance(value, bool) else text_of(name, value)
            for name in self._columns
            for value in (row[name],)
        }
        line = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
        self._file.write(f"{self._separator}{line}")
        self._separator = ",\n"
