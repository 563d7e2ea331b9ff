"""`describe` for people: the object, then its lists as tables. In every other format, the body."""

from __future__ import annotations

from collections.abc import Sequence

import click

from headrace.cli.options import printer
from headrace.cli.output import Column, Name, Row, path

CONDITIONS = (
    Column("condition", path("type")),
    Column("status", path("status")),
    Column("reason", path("reason")),
    Column("message", path("message")),
)
STATUS = ((("status", "conditions"), CONDITIONS),)


def describe(
    found: Row,
    columns: Sequence[Column],
    *,
    name: Name = "name",
    lists: Sequence[tuple[Sequence[str], Sequence[Column]]] = STATUS,
) -> None:
    """Print an object and, as tables below it, `lists`: where each is, and its columns."""
    out = printer()
    out.one(found, columns, name=name)
    if not out.for_people:
        return
    for place, shown in lists:
        listed = path(*place)(found)
        rows = [row for row in listed if isinstance(row, dict)] if isinstance(listed, list) else []
        if rows:
            click.echo()
            out.many(rows, shown)
