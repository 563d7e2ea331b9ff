"""`headrace stream list|describe|create|delete`."""

from __future__ import annotations

import click

from headrace.cli.confirm import delete as delete_object
from headrace.cli.confirm import deletion_options, held_by
from headrace.cli.describe import describe as show
from headrace.cli.main import Tree
from headrace.cli.messages import count_of, in_words_typed
from headrace.cli.options import Verb, client, printer
from headrace.cli.output import Column, path
from headrace.cli.watch import WatchedVerb

COLUMNS = (
    Column("name", path("name")),
    Column("created", path("created_at")),
    Column("id", path("id"), wide=True),
    Column("project", path("project_id"), wide=True),
    Column("cluster", path("cluster_id"), wide=True),
)


@click.group(cls=Tree)
def stream() -> None:
    """Manage streams, the namespaces of topics."""


@stream.command("list", cls=WatchedVerb)
def list_streams() -> None:
    """List the streams that the API key can access."""
    with client() as c:
        found = c.admin.streams()
    printer().many(found, COLUMNS)


@stream.command(cls=WatchedVerb)
@click.argument("name")
def describe(name: str) -> None:
    """Show a stream, given its name or id."""
    with client() as c:
        found = c.admin.object("stream", name)
    show(found, COLUMNS)


@stream.command(cls=Verb)
@click.argument("name")
def create(name: str) -> None:
    """Create a stream."""
    with client() as c, in_words_typed({"#/name": "NAME"}):
        made = c.admin.create_stream(name)
    printer().done(made, COLUMNS)


@stream.command(cls=Verb)
@click.argument("name")
@deletion_options(cascade="its topics")
def delete(
    name: str,
    yes: bool,
    cascade: bool,
    wait: bool,
    timeout: str,
    force_reason: str,
    confirm_deletions: int,
) -> None:
    """Delete a stream, given its name or id."""
    with client() as c:
        found = c.admin.object("stream", name)
        topics = c.admin.items("/topics", {"stream_id": str(found["id"])})
    delete_object(
        "stream",
        found,
        COLUMNS,
        [count_of(len(topics), "topic"), *held_by(topics)],
        yes=yes,
        cascade=cascade,
        force_reason=force_reason,
        confirm_deletions=confirm_deletions,
        wait=wait,
        timeout=timeout,
    )
