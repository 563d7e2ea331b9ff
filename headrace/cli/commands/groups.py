"""`headrace group list|describe|lag`: asked of the node, so it is true now."""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING

import click

from headrace.cli.commands.completion import topic_names
from headrace.cli.describe import describe as show
from headrace.cli.main import Tree
from headrace.cli.messages import count_of
from headrace.cli.options import client, printer
from headrace.cli.output import Column, Row, note, path
from headrace.cli.watch import WatchedVerb
from headrace.errors import HeadraceError

if TYPE_CHECKING:
    from headrace.consumer.groups import GroupMember

COLUMNS = (
    Column("name", path("name")),
    Column("state", path("state")),
    Column("members", lambda row: len(_members(row)), right=True),
    Column("generation", path("generation"), right=True),
)
_LIST = (
    Column("name", path("name")),
    Column("state", path("state")),
    Column("members", path("members"), right=True),
    Column("partitions", path("partitions"), right=True),
    Column("lag", path("lag"), right=True),
    Column("topics", lambda row: ", ".join(map(str, _listed(row.get("topics")))), wide=True),
)
_MEMBERS = (
    Column("member", path("member")),
    Column("partitions", lambda row: ", ".join(map(_at, _listed(row.get("partitions"))))),
)
_LAG = (
    Column("topic", path("topic")),
    Column("partition", path("partition"), right=True),
    Column("committed", path("committed"), right=True),
    Column("start", path("log_start"), right=True),
    Column("end", path("log_end"), right=True),
    Column("lag", path("lag"), right=True),
    Column("member", path("member")),
)


class LagTooLong(HeadraceError):
    """The group is further behind than --exit-on-lag allows."""

    code = "LAG_TOO_LONG"


@click.group(cls=Tree)
def group() -> None:
    """Inspect consumer groups and their lag."""


@group.command("list", cls=WatchedVerb)
@click.option(
    "--lag/--no-lag",
    "with_lag",
    default=True,
    help="Include the lag of groups with members; needs one request per partition.",
)
def list_all(with_lag: bool) -> None:
    """List the consumer groups of the project with their state, members and lag."""
    with client() as c:
        found = c.list_groups(lag=with_lag)
    # int64 are strings in JSON: a browser would round them.
    rows = [
        {
            "name": each.name,
            "state": each.state,
            "generation": str(each.generation),
            "members": each.members,
            "partitions": each.partitions,
            "topics": list(each.topics),
            "lag": _text(each.lag),
        }
        for each in found
    ]
    printer().many(rows, _LIST)
    if with_lag and any(each.lag is None for each in found):
        note("Groups without members show no lag. Use: headrace group lag NAME")


@group.command(cls=WatchedVerb)
@click.argument("name")
def describe(name: str) -> None:
    """Show the members of a consumer group and their partitions."""
    with client() as c:
        found = c.describe_group(name)
    body: Row = {
        "name": found.name,
        "state": found.state,
        "generation": str(found.generation),
        "members": [_member(each) for each in found.members],
    }
    show(body, COLUMNS, lists=((["members"], _MEMBERS),))


def _member(member: GroupMember) -> Row:
    held = [{"topic": at.topic, "partition": at.partition} for at in member.partitions]
    return {"member": member.member, "partitions": held}


@group.command(cls=WatchedVerb)
@click.argument("name")
@click.option(
    "--topic",
    "topics",
    multiple=True,
    shell_complete=topic_names,
    help="Only this topic, even if the group has not read it yet. Repeatable.",
)
@click.option(
    "--exit-on-lag",
    type=click.IntRange(min=0),
    metavar="COUNT",
    help="Exit with code 1 if the total lag is greater than COUNT, for monitoring.",
)
def lag(name: str, topics: tuple[str, ...], exit_on_lag: int | None) -> None:
    """Show the lag of a consumer group for each partition."""
    with client() as c:
        found = c.group_lag(name, topics)
    # int64 are strings in JSON: a browser would round them.
    rows = [
        {
            **{k: v if k in _PLAIN else _text(v) for k, v in dataclasses.asdict(each).items()},
            "lag": str(each.lag),
        }
        for each in found
    ]
    printer().many(rows, _LAG, name=lambda row: f"{row['topic']}[{row['partition']}]")
    total = sum(each.lag for each in found)
    if sys.stderr.isatty():
        note(f"Total lag: {count_of(total, 'record')}")
    if exit_on_lag is not None and total > exit_on_lag:
        lag_total = count_of(total, "record")
        raise LagTooLong(f"The lag of group {name} is {lag_total}; the limit is {exit_on_lag}")


_PLAIN = {"topic", "partition", "member"}


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _members(row: Row) -> list[object]:
    return _listed(row.get("members"))


def _at(partition: object) -> str:
    return f"{partition['topic']}[{partition['partition']}]" if isinstance(partition, dict) else ""
