"""`headrace project list|describe|create|delete`."""

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
    Column("id", path("id")),
    Column("organization", path("organization_id"), wide=True),
)


@click.group(cls=Tree)
def project() -> None:
    """Manage projects. An API key can be restricted to one project."""


@project.command("list", cls=WatchedVerb)
def list_projects() -> None:
    """List the projects that the API key can access."""
    with client() as c:
        found = c.admin.projects()
    printer().many(found, COLUMNS)


@project.command(cls=WatchedVerb)
@click.argument("name")
def describe(name: str) -> None:
    """Show a project, given its name or id."""
    with client() as c:
        found = c.admin.object("project", name)
    show(found, COLUMNS)


@project.command(cls=Verb)
@click.argument("name")
def create(name: str) -> None:
    """Create a project with a stream named `default`."""
    with client() as c, in_words_typed({"#/name": "NAME"}):
        made = c.admin.create_project(name)
    printer().done(made, COLUMNS)


@project.command(cls=Verb)
@click.argument("name")
@deletion_options(cascade="its streams and their topics")
def delete(
    name: str,
    yes: bool,
    cascade: bool,
    wait: bool,
    timeout: str,
    force_reason: str,
    confirm_deletions: int,
) -> None:
    """Delete a project, given its name or id. Its API keys are revoked."""
    with client() as c:
        found = c.admin.object("project", name)
        inside = {"project_id": str(found["id"])}
        topics, streams = c.admin.items("/topics", inside), c.admin.items("/streams", inside)
        keys = c.admin.items("/api-keys", inside)
    counts = ((streams, "stream"), (topics, "topic"), (keys, "key"))
    lost = [", ".join(count_of(len(each), noun) for each, noun in counts), *held_by(topics)]
    delete_object(
        "project",
        found,
        COLUMNS,
        lost,
        yes=yes,
        cascade=cascade,
        force_reason=force_reason,
        confirm_deletions=confirm_deletions,
        wait=wait,
        timeout=timeout,
    )
