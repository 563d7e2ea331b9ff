"""`headrace hold create|list|get|release`."""

from __future__ import annotations

import click

from headrace.cli.commands.completion import topic_names
from headrace.cli.confirm import confirm
from headrace.cli.describe import STATUS
from headrace.cli.describe import describe as show
from headrace.cli.main import Tree
from headrace.cli.messages import count_of, in_words_typed
from headrace.cli.options import Verb, client, printer
from headrace.cli.output import Column, Row, note, path
from headrace.cli.watch import WatchedVerb


def _scope(row: Row) -> str:
    partition = row.get("partition")
    begin = row.get("from_offset")
    where = "all" if partition is None else str(partition)
    return where if begin is None else f"{where}, from {begin}"


COLUMNS = (
    Column("id", path("id")),
    Column("topic", path("topic")),
    Column("partitions", _scope),
    Column("case", path("case_id")),
    Column("state", path("state")),
    Column("created", path("created_at")),
    Column("reason", path("reason"), wide=True),
    Column("owner", path("created_by"), wide=True),
    Column("active since", path("activated_at"), wide=True),
    Column("released", path("released_at"), wide=True),
)
_PARTITIONS = (
    Column("partition", path("index"), right=True),
    Column("missing", path("missing")),
    Column("held from", path("held_from"), right=True),
    Column("kept by holds", path("held_bytes"), right=True),
)
_TYPED = {
    "#/case_id": "--case",
    "#/reason": "--reason",
    "#/partition": "--partition",
    "#/from_offset": "--from-offset",
}


@click.group(cls=Tree)
def hold() -> None:
    """Manage legal holds, which protect records from deletion."""


@hold.command(cls=Verb)
@click.argument("topic", shell_complete=topic_names)
@click.option("--case", required=True, metavar="ID", help="Legal case of the hold.")
@click.option("--reason", required=True, metavar="TEXT", help="Reason for the hold; it is audited.")
@click.option("--partition", type=click.IntRange(min=0), help="Only this partition. Default: all.")
@click.option(
    "--from-offset", type=click.IntRange(min=0), help="First offset to hold. Default: all records."
)
@click.option("--wait/--no-wait", default=True, help="Wait until the hold is active (default).")
@click.option(
    "--timeout",
    default="60s",
    show_default=True,
    metavar="DURATION",
    help="Maximum time to wait.",
)
def create(
    topic: str,
    case: str,
    reason: str,
    partition: int | None,
    from_offset: int | None,
    wait: bool,
    timeout: str,
) -> None:
    """Place a legal hold on TOPIC.

    Retention, purges and deletions keep all records under a hold. Owners only.
    """
    with client() as c, in_words_typed(_TYPED):
        made = c.admin.create_hold(
            topic,
            case=case,
            reason=reason,
            partition=partition,
            from_offset=from_offset,
            wait=wait,
            timeout=timeout,
        )
    printer().done(made, COLUMNS, name="id")
    if not wait:
        note(f"The hold applies once it is ACTIVE. Check it with: headrace hold get {made['id']}")


@hold.command("list", cls=WatchedVerb)
@click.option("--topic", default="", help="Only holds on this topic.", shell_complete=topic_names)
@click.option("--case", default="", metavar="ID", help="Only holds of this case.")
@click.option(
    "--state",
    default="",
    help="Only holds in this state: PROPAGATING, ACTIVE, RELEASING or RELEASED.",
)
def list_holds(topic: str, case: str, state: str) -> None:
    """List legal holds, including released ones."""
    with client() as c:
        found = c.admin.holds(topic=topic, case=case, state=state)
    printer().many(found, COLUMNS, name="id")


@hold.command(cls=WatchedVerb)
@click.argument("hold_id", metavar="ID")
def get(hold_id: str) -> None:
    """Show a legal hold.

    The output includes the partitions that have not applied the hold yet.
    """
    with client() as c:
        found = c.admin.hold(hold_id)
    lists = (*STATUS, (("status", "partitions"), _PARTITIONS))
    show(found, COLUMNS, name="id", lists=lists)


@hold.command(cls=Verb)
@click.argument("hold_id", metavar="ID")
@click.option("--yes", is_flag=True, help="Skip confirmation.")
@click.option("--wait/--no-wait", default=True, help="Wait until the hold is released (default).")
@click.option(
    "--timeout",
    default="60s",
    show_default=True,
    metavar="DURATION",
    help="Maximum time to wait.",
)
def release(hold_id: str, yes: bool, wait: bool, timeout: str) -> None:
    """Release a legal hold permanently.

    Records kept beyond the retention policy are then deleted. Owners only.
    """
    with client() as c:
        found = c.admin.hold(hold_id)
    if not yes:
        confirm("hold", hold_id, _lost(found))
    with client() as c:
        released = c.admin.release_hold(found, wait=wait, timeout=timeout)
    printer().done(released, COLUMNS, name="id")
    later = f"Release is in progress. Check it with: headrace hold get {hold_id}"
    note("Released." if wait else later)


def _lost(found: Row) -> list[str]:
    """What a release deletes, as far as it was observed."""
    rows = path("status", "partitions")(found)
    sizes = [
        int(str(each["held_bytes"]))
        for each in (rows if isinstance(rows, list) else [])
        if isinstance(each, dict) and str(each.get("held_bytes", "")).isdigit()
    ]
    return [
        f"the hold of case {found.get('case_id')}: {found.get('reason')}",
        f"{count_of(sum(sizes), 'byte')} of {found.get('topic')} kept beyond its retention policy",
    ]
