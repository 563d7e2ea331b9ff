"""`headrace key list|describe|create|revoke`."""

from __future__ import annotations

import click

from headrace.cli.confirm import delete
from headrace.cli.describe import describe as show
from headrace.cli.main import Tree
from headrace.cli.messages import in_words_typed
from headrace.cli.options import Verb, client, printer
from headrace.cli.output import Column, note, path
from headrace.cli.watch import WatchedVerb

COLUMNS = (
    Column("name", path("name")),
    Column("role", path("spec", "role")),
    Column("expires", path("spec", "expires_at")),
    Column("revoked", path("revoked_at")),
    Column("created", path("created_at")),
    Column("id", path("id")),
    Column("project", path("project_id"), wide=True),
)
_TYPED = {"#/name": "NAME", "#/spec/role": "--role"}


@click.group(cls=Tree)
def key() -> None:
    """Manage API keys."""


@key.command("list", cls=WatchedVerb)
def list_keys() -> None:
    """List API keys without their secrets."""
    with client() as c:
        found = c.admin.keys()
    printer().many(found, COLUMNS)


@key.command(cls=WatchedVerb)
@click.argument("name")
def describe(name: str) -> None:
    """Show an API key without its secret, given its name or id."""
    with client() as c:
        found = c.admin.object("key", name)
    show(found, COLUMNS)


@key.command(cls=Verb)
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice(["owner", "editor", "viewer", "billing-viewer"]),
    default="editor",
    show_default=True,
    help="Role of the key.",
)
@click.option(
    "--organization",
    default="",
    metavar="NAME",
    help="Organization of the key, name or id. Operators only.",
)
def create(name: str, role: str, organization: str) -> None:
    """Create an API key and print its secret. The secret is shown only once."""
    with client() as c, in_words_typed(_TYPED):
        made = c.admin.create_key(name, role=role, organization=organization)
    out = printer()
    out.done(made, (*COLUMNS, Column("secret", path("secret"))))
    shown = "store it now." if out.shows("secret") else str(made["secret"])
    note(f"The secret is shown only once: {shown}")


@key.command(cls=Verb)
@click.argument("name")
@click.option("--yes", is_flag=True, help="Skip confirmation.")
def revoke(name: str, yes: bool) -> None:
    """Revoke an API key, given its name or id. Requests that use it are refused."""
    with client() as c:
        found = c.admin.object("key", name)
    lost = [f"all clients that use it (role {path('spec', 'role')(found)})"]
    delete("key", found, COLUMNS, lost, yes=yes)
