"""`headrace topic list|describe|create|alter|purge|delete`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click

from headrace.cli.completion import topic_names
from headrace.cli.deleting import confirm, deletion_options, held_by
from headrace.cli.deleting import delete as delete_object
from headrace.cli.described import STATUS
from headrace.cli.described import describe as show
from headrace.cli.main import Tree
from headrace.cli.options import Verb, client, printer
from headrace.cli.output import Column, Row, note, path
from headrace.cli.watching import WatchedVerb
from headrace.cli.words import count_of, duration_of, in_words_typed, offset_of
from headrace.errors import Conflict, Invalid
from headrace.retry import seconds


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
    """Topics: list, describe, create, alter, purge, delete."""


@contextmanager
def _taken(name: str) -> Iterator[None]:
    """Say what to do where there is a topic of this name."""
    try:
        yield
    except Conflict as error:
        if error.code == "NAME_TAKEN" and not error.hint:
            error.hint = f"See it: headrace topic describe {name}; or pass --if-not-exists"
        raise


@topic.command(cls=Verb)
@click.argument("name")
@click.option("--partitions", type=click.IntRange(1, 1024), help="How many partitions.")
@click.option(
    "--retention",
    metavar="DURATION",
    help='How long records shall stay: "7d", "12h", "30m" or unlimited.',
)
@click.option("--codec", type=click.Choice(["none", "lz4", "zstd"]), help="Compression of batches.")
@click.option(
    "--set", "members", multiple=True, metavar="KEY=VALUE", help="Any member of the spec."
)
@click.option(
    "--if-not-exists", is_flag=True, help="Succeed when it is there already, and leave it as it is."
)
@click.option("--wait/--no-wait", default=True, help="Return when it is Ready (default).")
@click.option("--timeout", default="60s", show_default=True, metavar="DURATION")
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
    """Create NAME, which is `topic` or `stream/topic`."""
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


@topic.command(cls=Verb)
@click.argument("name", shell_complete=topic_names)
@click.option("--partitions", type=click.IntRange(1, 1024), help="How many partitions: more only.")
@click.option("--retention", metavar="DURATION", help='"7d", "12h", "30m" or unlimited.')
@click.option("--codec", type=click.Choice(["none", "lz4", "zstd"]), help="For new batches.")
@click.option(
    "--paused/--no-paused", default=None, help="Whether workers leave it alone and ask nobody."
)
@click.option(
    "--managed/--no-managed", default=None, help="Whether workers change it, or look at it only."
)
@click.option(
    "--set", "members", multiple=True, metavar="KEY=VALUE", help="Any member; KEY= unsets it."
)
@click.option("--wait/--no-wait", default=True, help="Return when it is so (default).")
@click.option("--timeout", default="60s", show_default=True, metavar="DURATION")
def alter(
    name: str,
    partitions: int | None,
    retention: str | None,
    codec: str | None,
    paused: bool | None,
    managed: bool | None,
    members: tuple[str, ...],
    wait: bool,
    timeout: str,
) -> None:
    """Change the topic NAME. More partitions move keys: a key's order begins anew there."""
    spec = _spec(retention, codec, members)
    asked = {"partitions": partitions, "paused": paused, "managed": managed}
    spec |= {member: value for member, value in asked.items() if value is not None}
    if not spec:
        raise click.UsageError(
            "Say what to change: --partitions, --retention, --codec, --paused, --managed or --set."
        )
    with client() as c, in_words_typed(_typed(members), name.rpartition("/")[0]):
        altered = c.admin.alter_topic(name, spec, wait=wait, timeout=timeout)
    printer().done(altered, COLUMNS, name=_name)


def _spec(retention: str | None, codec: str | None, members: tuple[str, ...]) -> dict[str, object]:
    spec: dict[str, object] = dict(_member(text) for text in members)
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
            f"--retention {text} is not a duration", hint='Write "7d", "12h", "30m" or unlimited.'
        ) from error


def _member(text: str) -> tuple[str, object]:
    key, equals, value = text.partition("=")
    if not equals:
        raise Invalid(f"{text!r} is not KEY=VALUE", hint="Example: --set segment_bytes=16777216")
    if not value:
        return key, None
    if value in ("true", "false"):
        return key, value == "true"
    small = offset_of(value) is not None and key in (
        "partitions",
        "replication_factor",
        "max_message_bytes",
    )
    return key, int(value) if small else value


@topic.command("list", cls=WatchedVerb)
@click.option("--stream", default="", help="Only this stream.")
def list_topics(stream: str) -> None:
    """List the topics that the key may see."""
    with client() as c:
        found = c.admin.topics(stream=stream)
    printer().many(found, COLUMNS, name=_name)
    if not found:
        note("No topics. Create one: headrace topic create NAME")


@topic.command(cls=WatchedVerb)
@click.argument("name", shell_complete=topic_names)
def describe(name: str) -> None:
    """Show NAME with what was wished and what is."""
    with client() as c:
        found = c.admin.topic(name, live=True)
    lists = (*STATUS, (("status", "partitions"), _PARTITIONS))
    show(found, COLUMNS, name=_name, lists=lists)


@topic.command(cls=Verb)
@click.argument("name", shell_complete=topic_names)
@click.option(
    "--before",
    required=True,
    metavar="OFFSET",
    help="The first offset of --partition that is kept, or `end`.",
)
@click.option("--partition", type=click.IntRange(min=0), help="This one alone; default: all.")
@click.option("--dry-run", is_flag=True, help="Say what would go, and take nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--wait/--no-wait", default=True, help="Return when they are gone (default).")
@click.option("--timeout", default="60s", show_default=True, metavar="DURATION")
def purge(
    name: str,
    before: str,
    partition: int | None,
    dry_run: bool,
    yes: bool,
    wait: bool,
    timeout: str,
) -> None:
    """Delete the records of the topic NAME that lie before an offset. Nothing held goes."""
    with client() as c, in_words_typed(_PURGED):
        found = c.admin.topic(name, live=True)
        wish = _before(found, before, partition)
        planned = c.admin.purge_topic(found, wish, dry_run=True)
        if not dry_run and not yes:
            confirm("topic", str(found["name"]), [_planned(planned)], "purge")
        purged = planned
        if not dry_run:
            purged = c.admin.purge_topic(found, wish, wait=wait, timeout=timeout)
    printer().done(purged, COLUMNS, name=_name)
    if dry_run:
        note(f"Would go: {_planned(planned)}.")
    else:
        note("Purged." if wait else f"Being purged. See it: headrace explain {found['id']}")


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
            f"Nobody has seen the partitions of {_name(found)} yet",
            hint=f"Why: headrace explain {found['id']}",
        )
    if text == "end":
        wish = {index: ends.get(index, 0) for index in chosen}
        return {index: offset for index, offset in wish.items() if offset} or {chosen[0]: 1}
    offset = offset_of(text)
    if offset is None:
        raise Invalid(f"--before {text} is no offset", hint="Write an offset, or end.")
    if len(chosen) != 1:
        raise click.UsageError("An offset is one partition's: pass --partition too, or end.")
    return {chosen[0]: offset}


def _planned(planned: Row) -> str:
    records = str(path("plan", "data_loss", "records")(planned))
    size = path("plan", "data_loss", "bytes_estimate")(planned)
    return f"{count_of(int(records), 'record')}, about {size} bytes"


@topic.command(cls=Verb)
@click.argument("name", shell_complete=topic_names)
@deletion_options()
def delete(
    name: str, yes: bool, wait: bool, timeout: str, force_reason: str, confirm_deletions: int
) -> None:
    """Delete the topic NAME with all its records."""
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
