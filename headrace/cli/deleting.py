"""What `delete` of any kind shares: it tells what will be lost, asks for the name, and waits until
the name is free. Refuses to delete unasked where nobody can answer."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import click

from headrace.cli.options import client, printer
from headrace.cli.output import Column, Name, Row, note, path
from headrace.cli.words import count_of
from headrace.errors import Conflict, HeadraceError
from headrace.kinds import Kind
from headrace.rest import Resource
from headrace.retry import Duration

F = TypeVar("F", bound=Callable[..., object])


class NotConfirmed(HeadraceError):
    """The name that was typed is another."""

    code = "NOT_CONFIRMED"


def deletion_options(cascade: str = "") -> Callable[[F], F]:
    """The options of a deletion; `cascade`: what would go with it, if anything can."""

    def decorate(command: F) -> F:
        options = [
            click.option("--yes", is_flag=True, help="Do not ask."),
            click.option(
                "--wait/--no-wait", default=True, help="Return when it is gone (default)."
            ),
            click.option("--timeout", default="60s", show_default=True, metavar="DURATION"),
            click.option(
                "--force-reason",
                default="",
                metavar="TEXT",
                help="Give up partitions that cannot answer; owners only, and it is audited.",
            ),
            click.option(
                "--confirm-deletions",
                type=click.IntRange(min=0),
                default=0,
                metavar="COUNT",
                help="How many topics go, where DELETION_BREAKER asked for it.",
            ),
        ]
        if cascade:
            options.append(click.option("--cascade", is_flag=True, help=f"With {cascade}."))
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
    note(done if wait else f"Being deleted. See it: headrace explain {found['id']}")


@contextmanager
def _in_flags(name: str) -> Iterator[None]:
    """Say what next in flags: REST's own hints speak of its parameters."""
    try:
        yield
    except Conflict as error:
        asked = re.search(r"confirm_deletions=(\d+)", error.hint)
        if error.code == "CHILDREN_EXIST":
            error.hint = "Delete them first, or pass --cascade and they go too, with all their data"
        elif error.code == "DELETION_PROTECTED":
            error.hint = f"headrace topic alter {name} --set deletion_protection=false"
        elif asked is not None:
            error.hint = f"If that is what you want, pass --confirm-deletions {asked[1]}"
        raise


def confirm(kind: Kind, name: str, lost: Sequence[str], verb: str = "") -> None:
    """Say what goes, and read the name from the terminal. Raises NotConfirmed for another one."""
    verb = verb or {"key": "revoke", "hold": "release"}.get(kind, "delete")
    note(f"This {verb}s the {kind} {name}, and with it:")
    for line in lost:
        note(f"  {line}")
    if not sys.stdin.isatty():
        raise click.UsageError(f"Nobody can be asked here: pass --yes to {verb} it unasked.")
    sys.stderr.write(f"Nothing brings it back. Type {name} to go on: ")
    sys.stderr.flush()
    if sys.stdin.readline().strip() != name:
        raise NotConfirmed(f"That is another name; nothing was {verb}d")


def held_by(topics: Sequence[Row]) -> list[str]:
    """What topics hold, as far as it was seen."""
    partitions = [
        each
        for topic in topics
        for each in _listed(path("status", "partitions")(topic))
        if isinstance(each, dict)
    ]
    records = [int(p["end_offset"]) - int(p["start_offset"]) for p in partitions if _counted(p)]
    size = sum(int(p["bytes"]) for p in partitions if str(p.get("bytes", "")).isdigit())
    unseen = len(partitions) - len(records)
    told = f"{count_of(sum(records), 'record')} in {count_of(len(partitions), 'partition')}"
    lines = [f"{told}, {count_of(size, 'byte')}"]
    if unseen:
        lines.append(f"and what is in {count_of(unseen, 'partition')} that nobody has counted yet")
    return lines


def _counted(partition: Row) -> bool:
    return all(str(partition.get(m, "")).isdigit() for m in ("start_offset", "end_offset"))


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []
