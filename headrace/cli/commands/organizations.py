"""`headrace org list|describe|create`."""

from __future__ import annotations

import click

from headrace.cli.describe import describe as show
from headrace.cli.main import Tree
from headrace.cli.messages import in_words_typed
from headrace.cli.options import Verb, client, printer
from headrace.cli.output import Column, note, path
from headrace.cli.watch import WatchedVerb

COLUMNS = (
    Column("name", path("name")),
    Column("display_name", path("display_name")),
    Column("created", path("created_at")),
    Column("id", path("id")),
)


@click.group(cls=Tree)
def org() -> None:
    """Manage organizations. Only operators can list and create other organizations."""


@org.command("list", cls=WatchedVerb)
def list_organizations() -> None:
    """List the organizations that the API key can access."""
    with client() as c:
        found = c.admin.objects("org")
    printer().many(found, COLUMNS)


@org.command(cls=WatchedVerb)
@click.argument("name")
def describe(name: str) -> None:
    """Show an organization, given its name or id."""
    with client() as c:
        found = c.admin.object("org", name)
    show(found, COLUMNS)


@org.command(cls=Verb)
@click.argument("name")
def create(name: str) -> None:
    """Create an organization. Operators only."""
    with client() as c, in_words_typed({"#/name": "NAME"}):
        made = c.admin.create_organization(name)
    printer().done(made, COLUMNS)
    command = f"headrace key create owner --role owner --organization {name}"
    note(f"Create its first API key with: {command}")
