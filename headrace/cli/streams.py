"""`headrace stream create|list`."""

from __future__ import annotations

import click

from headrace.cli.main import Tree
from headrace.cli.options import Verb, client, printer
from headrace.cli.output import Column, path
from headrace.cli.words import in_words_typed

COLUMNS = (
    Column("name", path("name")),
    Column("created", path("created_at")),
    Column("id", path("id"), wide=True),
    Column("project", path("project_id"), wide=True),
    Column("cluster", path("cluster_id"), wide=True),
)


@click.group(cls=Tree)
def stream() -> None:
    """Create and list streams, the namespaces of topics."""


@stream.command(cls=Verb)
@click.argument("name")
def create(name: str) -> None:
    """Create the stream NAME."""
    with client() as c, in_words_typed({"#/name": "NAME"}):
        made = c.admin.create_stream(name)
    printer().one(made, COLUMNS)


@stream.command("list", cls=Verb)
def list_streams() -> None:
    """List the streams that the key may see."""
    with client() as c:
        found = c.admin.streams()
    printer().many(found, COLUMNS)
