"""From a job's CSV to rows of a table, none of which a database would refuse.

The CSV is read as the job wrote it: text that a spreadsheet could take for a formula has an
apostrophe before it.
"""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from itertools import islice
from typing import Final

from sqlalchemy import String, insert, inspect
from sqlalchemy.orm import Session

from api.db.database import Base
from api.http.errors import ResultRejectedError
from api.http.resource import INT64_MAX

ROWS_A_STATEMENT: Final = 500


def insert_all(session: Session, table: type[Base], rows: Iterator[Mapping[str, object]]) -> None:
    """Rows into a table, made as they are inserted: the transaction is never idle for as long as
    all of them take, and no second copy of them is in memory.

    :raises ResultRejectedError: a value is none that the table holds.
    """
    while some := list(islice(rows, ROWS_A_STATEMENT)):
        for row in some:
            check_values(table, row)
        session.execute(insert(table), some)


def csv_lines(text: str, columns: Sequence[str], name: str) -> Iterator[dict[str, str]]:
    """The cells of a CSV file by column, text without what keeps spreadsheets from running it.

    :raises ResultRejectedError: it has other columns, or a line is none of them.
    """
    reader = csv.reader(io.StringIO(text, newline=""))
    try:
        if tuple(next(reader, ())) != tuple(columns):
            raise ResultRejectedError(f"{name} has other columns than this version reads.")
        for cells in reader:
            if len(cells) != len(columns):
                raise ResultRejectedError(
                    f"Line {reader.line_num} of {name} has {len(cells)} cells."
                )
            yield dict(zip(columns, map(unescaped, cells), strict=True))
    except csv.Error as error:
        raise ResultRejectedError(f"{name} is not CSV: {error}.") from None


def check_values(table: type[Base], row: Mapping[str, object]) -> None:
    """Refuses what some database would not store: long texts, NULs, numbers beyond 64 bits, times
    that are nowhere.

    :raises ResultRejectedError: names the column.
    """
    for name, most in _columns(table).items():
        value = row.get(name)
        if isinstance(value, str):
            holds = "\0" not in value and (most is None or len(value) <= most)
        elif isinstance(value, datetime):
            holds = value.tzinfo is not None
        else:
            holds = not isinstance(value, int) or abs(value) <= INT64_MAX
        if not holds:
            raise ResultRejectedError(f"The {name} of a row cannot be stored: {str(value)[:40]!r}.")


@cache
def _columns(table: type[Base]) -> dict[str, int | None]:
    """By name how many characters a column holds, if it is said."""
    return {
        one.key: one.type.length if isinstance(one.type, String) else None
        for one in inspect(table).columns
    }


def unescaped(cell: str) -> str:
    """A cell of text without the apostrophe that keeps spreadsheets from running it."""
    return cell[1:] if cell.startswith("'") else cell
