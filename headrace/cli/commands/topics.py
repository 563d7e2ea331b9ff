"""`headrace topic list|describe|create|alter|purge|delete`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import click

from headrace.cli import topic_spec
from headrace.cli.commands.completion import topic_names
from headrace.cli.confirm import confirm, deletion_options, held_by
from headrace.cli.confirm import delete as delete_object
from headrace.cli.describe import STATUS
from headrace.cli.describe import describe as show
from headrace.cli.main import Tree
from headrace.cli.messages import duration_of, in_words_typed, offset_of
from headrace.cli.options import Verb, client, printer
from headrace.cli.output import Column, Row, note, path
from headrace.cli.preview import note_deleted, preview_change, preview_purge, purge_loss
from headrace.cli.retention_plan import LIMITS, going
from headrace.cli.watch import WatchedVerb
from headrace.errors import Conflict, Invalid
from headrace.transport.retry import seconds


def _ready(row: Row) -> object:
    conditions = path("status", "conditions")(row)
    if isinstance(conditions, list):
        for condition in conditions:
            if isinstance(condition, dict) and condition.get("type") == "Ready":
                return condition.get("status")
    return "Unknown"


def _name(row: Row) -> str:
    return f"{path('stream')(row)}/{path('name')(row)}"


COLUMNS = (
    Column("name", _name),
    Column("partitions", path("status", "effective", "partitions"), right=True),
    Column(
        "retention",
        lambda row: duration_of(path("status", "effective", "retention_ms")(row)),
        right=True,
    ),
    Column("ready", _ready),
    Column("created", path("created_at")),
    Column("id", path("id"), wide=True),
    Column("codec", path("status", "effective", "codec"), wide=True),
    Column("generation", path("generation"), wide=True, right=True),
)
_SHOWN = {"partitions", "retention_ms", "codec"}
DESCRIBED = (
    *(replace(each, wide=False) for each in COLUMNS),
    *(each for each in topic_spec.COLUMNS if each.title not in _SHOWN),
)


_TYPED = {
    "#/name": "NAME",
    "#/stream": "NAME",
    "#/spec/partitions": "--partitions",
    "#/spec/retention_ms": "--retention",
    "#/spec/codec": "--codec",
}


def _typed(members: tuple[str, ...]) -> dict[str, str]:
    """A member that came by --set goes by it: its flag may take another unit."""
    by_set = {f"#/spec/{each.partition('=')[0]}" for each in members}
    return {pointer: said for pointer, said in _TYPED.items() if pointer not in by_set}


_PURGED = {"#/partitions/0/index": "--partition", "#/partitions/0/before_offset": "--before"}


@click.group(cls=Tree)
def topic() -> None:
    """Manage topics and their records."""


@contextmanager
def _taken(name: str) -> Iterator[None]:
    """Say what to do where there is a topic of this name."""
    try:
        yield
    except Conflict as error:
        if error.code == "NAME_TAKEN" and not error.hint:
            error.hint = f"Show it with: headrace topic describe {name}; or pass --if-not-exists"
        raise


@topic.command(cls=Verb, epilog=topic_spec.HELP)
@click.argument("name")
@click.option("--partitions", type=click.IntRange(1, 1024), help="Number of partitions.")
@click.option(
    "--retention",
    metavar="DURATION",
    help='How long to keep records: "7d", "12h", "30m" or unlimited.',
)
@click.option(
    "--codec",
    type=click.Choice(["none", "lz4", "zstd"]),
    help="Compression codec of batches.",
)
@click.option(
    "--set",
    "members",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set a setting from the list below. Repeatable.",
)
@click.option("--if-not-exists", is_flag=True, help="Succeed without changes if the topic exists.")
@click.option("--wait/--no-wait", default=True, help="Wait until the topic is ready (default).")
@click.option(
    "--timeout",
    default="60s",
    show_default=True,
    metavar="DURATION",
    help="Maximum time to wait.",
)
def create(
    name: str,
    partitions: int | None,
    retention: str | None,
    codec: str | None,
    members: tuple[str, ...],
    if_not_exists: bool,
    wait: bool,
    timeout: str,
) -> None:
    """Create a topic. NAME is TOPIC or STREAM/TOPIC."""
    spec = _spec(retention, codec, members)
    with client() as c, in_words_typed(_typed(members), name.rpartition("/")[0]), _taken(name):
        made = c.admin.create_topic(
            name,
            partitions=partitions,
            spec=spec,
            if_not_exists=if_not_exists,
            wait=wait,
            timeout=timeout,
        )
    printer().done(made, COLUMNS, name=_name)


@topic.command(cls=Verb, epilog=topic_spec.HELP)
@click.argument("name", shell_complete=topic_names)
@click.option(
    "--partitions",
    type=click.IntRange(1, 1024),
    help="Number of partitions; it can only increase.",
)
@click.option(
    "--retention",
    metavar="DURATION",
    help='How long to keep records: "7d", "12h", "30m" or unlimited.',
)
@click.option(
    "--codec",
    type=click.Choice(["none", "lz4", "zstd"]),
    help="Compression codec of new batches.",
)
@click.option("--paused/--no-paused", default=None, help="Pause or resume reconciliation.")
@click.option(
    "--managed/--no-managed", default=None, help="Reconcile the topic, or only observe it."
)
@click.option(
    "--set",
    "members",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change a setting from the list below; KEY= restores its default. Repeatable.",
)
@click.option(
    "--dry-run", is_flag=True, help="Show what would change, and the records that would be deleted."
)
@click.option("--yes", is_flag=True, help="Skip confirmation, even if records will be deleted.")
@click.option("--wait/--no-wait", default=True, help="Wait until the change is applied (default).")
@click.option(
    "--timeout",
    default="60s",
    show_default=True,
    metavar="DURATION",
    help="Maximum time to wait.",
)
def alter(
    name: str,
    partitions: int | None,
    retention: str | None,
    codec: str | None,
    paused: bool | None,
    managed: bool | None,
    members: tuple[str, ...],
    dry_run: bool,
    yes: bool,
    wait: bool,
    timeout: str,
) -> None:
    """Change a topic.

    Adding partitions moves keys to other partitions: the order of a key's records is kept only
    within a partition. If a shorter retention deletes records, the command shows them and asks
    for confirmation.
    """
    spec = _spec(retention, codec, members)
    asked = {"partitions": partitions, "paused": paused, "managed": managed}
    spec |= {member: value for member, value in asked.items() if value is not None}
    if not spec:
        raise click.UsageError(
            "Pass at least one of --partitions, --retention, --codec, --paused, --managed or --set."
        )
    with client() as c, in_words_typed(_typed(members), name.rpartition("/")[0]):
        if dry_run:
            found = c.admin.topic(name)
            preview_change(found, c.admin.alter_topic(name, spec, dry_run=True), COLUMNS, _name)
            return
        lost: list[str] = []
        if LIMITS & spec.keys():
            altered = c.admin.alter_topic(name, spec, dry_run=True)
            lost = going(altered)
        if lost and not yes:
            confirm("topic", str(altered["name"]), lost, "change")
        altered = c.admin.alter_topic(name, spec, wait=wait, timeout=timeout)
    printer().done(altered, COLUMNS, name=_name)
    if yes:
        note_deleted("Will be deleted", lost)


def _spec(retention: str | None, codec: str | None, members: tuple[str, ...]) -> dict[str, object]:
    spec: dict[str, object] = dict(map(topic_spec.member, members))
    if retention is not None:
        spec["retention_ms"] = _retention(retention)
    if codec is not None:
        spec["codec"] = codec
    return spec


def _retention(text: str) -> str:
    if text == "unlimited":
        return text
    try:
        return str(round(seconds(text) * 1000))
    except Invalid as error:
        raise Invalid(
            f"--retention {text} is not a duration", hint='Use "7d", "12h", "30m" or unlimited.'
        ) from error


@topic.command("list", cls=WatchedVerb)
@click.option("--stream", default="", help="Only topics of this stream.")
def list_topics(stream: str) -> None:
    """List the topics that the API key can access."""
    with client() as c:
        found = c.admin.topics(stream=stream)
    printer().many(found, COLUMNS, name=_name)
    if not found:
        note("No topics found. Create one with: headrace topic create NAME")


@topic.command(cls=WatchedVerb)
@click.argument("name", shell_complete=topic_names)
def describe(name: str) -> None:
    """Show the topic's spec and status."""
    with client() as c:
        found = c.admin.topic(name, live=True)
    lists = (*STATUS, (("status", "partitions"), _PARTITIONS))
    show(found, DESCRIBED, name=_name, lists=lists)


@topic.command(cls=Verb)
@click.argument("name", shell_complete=topic_names)
@click.option(
    "--before",
    required=True,
    metavar="OFFSET",
    help="First offset to keep in --partition, or `end` to delete all records.",
)
@click.option("--partition", type=click.IntRange(min=0), help="Only this partition. Default: all.")
@click.option("--dry-run", is_flag=True, help="Preview the records that would be deleted.")
@click.option("--yes", is_flag=True, help="Skip confirmation.")
@click.option(
    "--wait/--no-wait", default=True, help="Wait until the records are deleted (default)."
)
@click.option(
    "--timeout",
    default="60s",
    show_default=True,
    metavar="DURATION",
    help="Maximum time to wait.",
)
def purge(
    name: str,
    before: str,
    partition: int | None,
    dry_run: bool,
    yes: bool,
    wait: bool,
    timeout: str,
) -> None:
    """Delete the records of a topic before an offset. Records under a legal hold are kept."""
    with client() as c, in_words_typed(_PURGED):
        found = c.admin.topic(name, live=True)
        limits = _before(found, before, partition)
        planned = c.admin.purge_topic(found, limits, dry_run=True)
        if dry_run:
            preview_purge(found, planned, limits, COLUMNS, _name)
            return
        if not yes:
            confirm("topic", str(found["name"]), [purge_loss(planned)], "purge")
        purged = c.admin.purge_topic(found, limits, wait=wait, timeout=timeout)
    printer().done(purged, COLUMNS, name=_name)
    later = f"Purge is in progress. Check it with: headrace explain {found['id']}"
    note("Purged." if wait else later)


def _before(found: Row, text: str, partition: int | None) -> dict[int, int]:
    """By partition the first offset that is kept, as of now for `end`."""
    rows = path("status", "partitions")(found)
    ends = {
        int(str(each["index"])): int(str(each["end_offset"]))
        for each in (rows if isinstance(rows, list) else [])
        if isinstance(each, dict)
    }
    chosen = sorted(ends) if partition is None else [partition]
    if not chosen:
        raise Invalid(
            f"The partitions of {_name(found)} have not been observed yet",
            hint=f"Find out why with: headrace explain {found['id']}",
        )
    if text == "end":
        limits = {index: ends.get(index, 0) for index in chosen}
        return {index: offset for index, offset in limits.items() if offset} or {chosen[0]: 1}
    offset = offset_of(text)
    if offset is None:
        raise Invalid(f"--before {text} is not an offset", hint="Use an offset, or end.")
    if len(chosen) != 1:
        raise click.UsageError(
            "An offset applies to one partition: pass --partition too, or use --before end."
        )
    return {chosen[0]: offset}


@topic.command(cls=Verb)
@click.argument("name", shell_complete=topic_names)
@deletion_options()
def delete(
    name: str, yes: bool, wait: bool, timeout: str, force_reason: str, confirm_deletions: int
) -> None:
    """Delete a topic and all its records."""
    with client() as c:
        found = c.admin.topic(name, live=True)
    delete_object(
        "topic",
        found,
        COLUMNS,
        held_by([found]),
        name=_name,
        yes=yes,
        force_reason=force_reason,
        confirm_deletions=confirm_deletions,
        wait=wait,
        timeout=timeout,
    )


_PARTITIONS = (
    Column("partition", path("index"), right=True),
    Column("primary", path("primary")),
    Column("state", path("state")),
    Column("start", path("start_offset"), right=True),
    Column("end", path("end_offset"), right=True),
    Column("bytes", path("bytes"), right=True),
    # Now, if the node answered; else when it was last looked at.
    Column("as of", path("observed_at")),
)
