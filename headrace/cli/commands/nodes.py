"""`headrace node list|describe`: operators only."""

from __future__ import annotations

import click

from headrace.cli.describe import describe as show
from headrace.cli.main import Tree
from headrace.cli.options import client, printer
from headrace.cli.output import Column, path
from headrace.cli.watch import WatchedVerb

COLUMNS = (
    Column("name", path("name")),
    Column("address", path("spec", "address")),
    Column("cluster", path("cluster_id")),
    Column("created", path("created_at")),
    Column("id", path("id")),
)


@click.group(cls=Tree)
def node() -> None:
    """Inspect nodes. Operators only."""


@node.command("list", cls=WatchedVerb)
def list_nodes() -> None:
    """List the nodes of all clusters."""
    with client() as c:
        found = c.admin.objects("node")
    printer().many(found, COLUMNS)


@node.command(cls=WatchedVerb)
@click.argument("name")
def describe(name: str) -> None:
    """Show a node, given its name or id."""
    with client() as c:
        found = c.admin.object("node", name)
    show(found, COLUMNS)
