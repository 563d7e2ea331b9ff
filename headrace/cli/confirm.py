"""What all `delete` commands share: they show the data that will be deleted, ask for the name, and
wait until the name is free. Refuses to delete without confirmation where stdin is no terminal."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import click

from headrace.admin.resources import Kind
from headrace.cli.messages import count_of
from headrace.cli.options import client, printer
from headrace.cli.output import Column, Name, Row, note, path
from headrace.errors import Conflict, HeadraceError
from headrace.transport.rest import Resource
from headrace.transport.retry import Duration

F = TypeVar("F", bound=Callable[..., object])


# How a confirmation goes on: what is lost, or who is affected.
_EFFECTS = {
    "delete": ", including",
    "change": " and deletes",
    "purge": " and deletes",
    "revoke": " and affects",
    "release": " and affects",
}


class NotConfirmed(HeadraceError):
    """The name that was typed does not match."""

    code = "NOT_CONFIRMED"


def deletion_options(cascade: str = "") -> Callable[[F], F]:
    """The options of a deletion; `cascade`: what would go with it, if anything can."""

    def decorate(command: F) -> F:
        options = [
            click.option("--yes", is_flag=True, help="Skip confirmation."),
            click.option(
                "--wait/--no-wait",
                default=True,
                help="Wait until the deletion is complete (default).",
            ),
            click.option(
                "--timeout",
                default="60s",
                show_default=True,
                metavar="DURATION",
                help="Maximum time to wait.",
            ),
            click.option(
                "--force-reason",
                default="",
                metavar="TEXT",
                help="Delete even if partitions do not respond. Owners only; audited.",
            ),
            click.option(
                "--confirm-deletions",
                type=click.IntRange(min=0),
                default=0,
                metavar="COUNT",
                help="Confirm the number of topics to delete, if DELETION_BREAKER requires it.",
            ),
        ]
        if cascade:
            options.append(click.option("--cascade", is_flag=True, help=f"Also delete {cascade}."))
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def delete(
    kind: Kind,
    found: Resource,
    columns: Sequence[Column],
    lost: Sequence[str],
    *,
    name: Name = "name",
    yes: bool,
    cascade: bool = False,
    force_reason: str = "",
    confirm_deletions: int = 0,
    wait: bool = True,
    timeout: Duration = "60s",
) -> None:
    """Ask, delete, wait, print what was deleted."""
    if not yes:
        confirm(kind, str(found["name"]), lost)
    with (
        client() as c,
        _in_flags("/".join(str(found[m]) for m in ("stream", "name") if m in found)),
    ):
        deleting = c.admin.delete(
            kind,
            found,
            cascade=cascade,
            force_reason=force_reason,
            confirm_deletions=confirm_deletions,
            wait=wait,
            timeout=timeout,
        )
    printer().done(deleting, columns, name=name)
    done = "Revoked." if kind == "key" else "Deleted."
    later = f"Deletion is in progress. Check it with: headrace explain {found['id']}"
    note(done if wait else later)


@contextmanager
def _in_flags(name: str) -> Iterator[None]:
    """Say what next in flags: REST's own hints speak of its parameters."""
    try:
        yield
    except Conflict as error:
        asked = re.search(r"confirm_deletions=(\d+)", error.hint)
        if error.code == "CHILDREN_EXIST":
            error.hint = "Delete them first, or pass --cascade to delete them with all their data"
        elif error.code == "DELETION_PROTECTED":
            error.hint = f"Run: headrace topic alter {name} --set deletion_protection=false"
        elif asked is not None:
            error.hint = f"To confirm, pass --confirm-deletions {asked[1]}"
        raise


def confirm(kind: Kind, name: str, lost: Sequence[str], verb: str = "") -> None:
    """Show what is lost and read the name from the terminal. Raises NotConfirmed for another."""
    verb = verb or {"key": "revoke", "hold": "release"}.get(kind, "delete")
    note(f"This {verb}s the {kind} {name}{_EFFECTS[verb]}:")
    for line in lost:
        note(f"  {line}")
    if not sys.stdin.isatty():
        raise click.UsageError(
            f"stdin is not a terminal. Pass --yes to {verb} the {kind} without confirmation."
        )
    sys.stderr.write(f"This cannot be undone. Type {name} to confirm: ")
    sys.stderr.flush()
    if sys.stdin.readline().strip() != name:
        raise NotConfirmed(f"The name does not match; nothing was {verb}d")


def held_by(topics: Sequence[Row]) -> list[str]:
    """What topics hold, as far as it was observed."""
    partitions = [
        each
        for topic in topics
        for each in _listed(path("status", "partitions")(topic))
        if isinstance(each, dict)
    ]
    records = [int(p["end_offset"]) - int(p["start_offset"]) for p in partitions if _counted(p)]
    size = sum(int(p["bytes"]) for p in partitions if str(p.get("bytes", "")).isdigit())
    unseen = len(partitions) - len(records)
    counted = f"{count_of(sum(records), 'record')} in {count_of(len(partitions), 'partition')}"
    lines = [f"{counted}, {count_of(size, 'byte')}"]
    if unseen:
        lines.append(f"an unknown number of records in {count_of(unseen, 'partition')}")
    return lines


def _counted(partition: Row) -> bool:
    return all(str(partition.get(m, "")).isdigit() for m in ("start_offset", "end_offset"))


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []
