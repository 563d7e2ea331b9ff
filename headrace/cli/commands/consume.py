"""`headrace consume`: records out, one line each, lossless in json, jsonl and yaml."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import click

from headrace.cli.commands.completion import topic_names
from headrace.cli.messages import offset_of, topics_named
from headrace.cli.options import Verb, client, printer
from headrace.cli.output import csv_of, note, yaml_of
from headrace.cli.sanitize import json_of, seen
from headrace.cli.template import PREFIX, Template
from headrace.errors import Invalid, StartRequired
from headrace.transport.retry import seconds

if TYPE_CHECKING:
    from headrace.consumer.consumer import Consumer
    from headrace.consumer.subscription import Start
    from headrace.messages import Message

_CSV = ["topic", "partition", "offset", "ts", "key", "value", "headers"]


@click.command(cls=Verb)
@click.argument("topics", nargs=-1, required=True, metavar="TOPIC...", shell_complete=topic_names)
@click.option("-g", "--group", help="Consume as a member of this group and commit offsets.")
@click.option(
    "--from",
    "begin",
    metavar="start|end|OFFSET|@TIME",
    help="Position to start from: start or earliest, end or latest, an offset, or a time such as "
    "@-1h (one hour ago) or @2026-01-01T00:00:00Z. Groups prefer their committed offsets.",
)
@click.option("-n", "--count", type=click.IntRange(min=1), help="Stop after this many records.")
@click.option("-e", "--exit-at-end", is_flag=True, help="Stop at the current end of the topic.")
@click.option("-p", "--partition", type=int, help="Only this partition; not with -g.")
def consume(
    topics: tuple[str, ...],
    group: str | None,
    begin: str | None,
    count: int | None,
    exit_at_end: bool,
    partition: int | None,
) -> None:
    """Print records from one or more topics."""
    if group is not None and partition is not None:
        raise click.UsageError(
            "Group members get their partitions assigned: pass -p or -g, not both."
        )
    writer = _Writer(printer().of_stream())
    with client() as c, topics_named(c, topics):
        consumer = c.consume(
            topics,
            group=group,
            partition=partition,
            start=_start(begin),
            until="end" if exit_at_end else None,
        )
        interrupted = False
        with consumer:
            try:
                _print(consumer, writer, count)
            except StartRequired as error:
                error.hint = (
                    "Pass --from start to read all records, or --from end to read new ones."
                )
                raise
            except KeyboardInterrupt:
                # What was printed is handled: leave the block in peace, so that it is committed.
                interrupted = True
        writer.end()
    if interrupted:
        raise KeyboardInterrupt
    if (
        exit_at_end
        and not group
        and not writer.written
        and begin is not None
        and offset_of(begin) is not None
    ):
        note(f"No records at or after offset {begin}: it is past the end.")


def _start(begin: str | None) -> Start | None:
    if begin is None:
        return None
    if begin in ("start", "earliest"):
        return "earliest"
    if begin in ("end", "latest"):
        return "latest"
    if (offset := offset_of(begin)) is not None:
        return offset
    if begin.startswith("@-"):
        return timedelta(seconds=seconds(begin[2:]))
    if begin.startswith("@"):
        return _moment(begin[1:])
    raise Invalid(
        f"--from {begin} is not a valid position", hint="Use start, end, an offset or @TIME."
    )


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise Invalid(
            f"{text} is not a time", hint="Use @2026-01-01T00:00:00Z, or @-1h for one hour ago."
        ) from error
    # A person at a terminal means the time zone there.
    return moment if moment.tzinfo else moment.astimezone()


def _print(consumer: Consumer, writer: _Writer, count: int | None) -> None:
    left = count
    for message in consumer:
        writer.write(message)
        if left is not None:
            left -= 1
            if left == 0:
                return
        if not consumer.rows_in_hand:
            sys.stdout.flush()


class _Writer:
    """One message at a time, in one format."""

    def __init__(self, output: str) -> None:
        from headrace.cli.envelope import envelope_of

        self._output = output
        self._envelope = envelope_of
        self._template = None
        if output.startswith(PREFIX):
            self._template = Template(output.removeprefix(PREFIX))
        self.written = 0
        if output == "csv":
            sys.stdout.write(csv_of(_CSV))

    def write(self, message: Message) -> None:
        """Print one message."""
        sys.stdout.write(self._text(message))
        self.written += 1

    def end(self) -> None:
        """Close what the format left open."""
        if self._output == "json":
            sys.stdout.write("\n]\n" if self.written else "[]\n")
        sys.stdout.flush()

    def _text(self, message: Message) -> str:
        if self._output in ("table", "wide"):
            return _readable(message, wide=self._output == "wide")
        if self._output == "name":
            return f"{seen(message.topic)}[{message.partition}]@{message.offset}\n"
        body = self._envelope(message)
        if self._output == "jsonl":
            return json_of(body) + "\n"
        if self._template is not None:
            return next(self._template.lines([_row(body)]))
        if self._output == "yaml":
            return "---\n" + yaml_of(body)
        if self._output == "csv":
            return csv_of([_cell(cell) for cell in _row(body).values()])
        return ("[\n" if not self.written else ",\n") + json_of(body)


def _row(body: Mapping[str, object]) -> dict[str, object]:
    """The same fields for every message: where a key or a value is no text, its base64."""
    return {name: body.get(name, body.get(f"{name}_b64")) for name in _CSV}


def _cell(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json_of(value)


def _readable(message: Message, *, wide: bool) -> str:
    key = "" if message.key is None else message.key.decode(errors="replace") + "  "
    value = "null" if message.value is None else message.value.decode(errors="replace")
    headers = ""
    if wide and message.headers:
        headers = "  " + ", ".join(
            f"{n}={'null' if v is None else v.decode(errors='replace')}" for n, v in message.headers
        )
    said = seen(f"{key}{value}{headers}")
    return f"{message.partition}@{message.offset}  {message.timestamp:%H:%M:%S.%f}  {said}\n"
