"""`headrace produce`: lines in, records out. Every line leaves within the linger, so a slow pipe is
a live one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli.commands.completion import topic_names
from headrace.cli.main import PartialFailure
from headrace.cli.messages import count_of, topics_named
from headrace.cli.options import Verb, client, printer
from headrace.cli.output import Column, note, path
from headrace.errors import HeadraceError, Invalid

if TYPE_CHECKING:
    from typing import BinaryIO

    from headrace.codec import Record

# A record of 8 MiB as an envelope, every byte of it escaped.
LINE_BYTES_MAX = 64 << 20
COLUMNS = (
    Column("topic", path("topic")),
    Column("records", path("records"), right=True),
    Column("failed", path("failed"), right=True),
)


@click.command(cls=Verb)
@click.argument("topic", shell_complete=topic_names)
@click.argument("files", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "-i",
    "--input",
    "source",
    type=click.Choice(["lines", "jsonl"]),
    default="lines",
    show_default=True,
    help="Input format: a line is a value, or an envelope as printed by `consume -o jsonl`.",
)
@click.option("-k", "--key", help="Key of all records; only for lines.")
@click.option(
    "-H",
    "--header",
    "headers",
    multiple=True,
    metavar="NAME:VALUE",
    help="Header of all records. Repeatable.",
)
@click.option("-p", "--partition", type=int, help="Partition. Default: chosen by key.")
def produce(
    topic: str,
    files: tuple[Path, ...],
    source: str,
    key: str | None,
    headers: tuple[str, ...],
    partition: int | None,
) -> None:
    """Send the lines of FILES, or of stdin, to a topic."""
    from headrace.cli.envelope import record_of_line
    from headrace.messages import record_of

    pairs = [_header(text) for text in headers]

    def record(line: bytes) -> Record:
        if len(line) > LINE_BYTES_MAX:
            raise Invalid(f"The line exceeds the limit of {LINE_BYTES_MAX >> 20} MiB")
        if source == "lines":
            return record_of(line, key, pairs)
        found = record_of_line(line)
        return found._replace(headers=(*found.headers, *((n, v.encode()) for n, v in pairs)))

    sent, failed = 0, 0
    cause: HeadraceError | None = None
    bad: Invalid | None = None
    place = ""
    with client() as c, topics_named(c, (topic,)):
        producer = c.shared_producer
        try:
            for where, line in _lines(files):
                place = where
                producer.send_record(topic, record(line), partition=partition)
                sent += 1
        except Invalid as error:
            bad = error
        finally:
            try:
                producer.flush()
            except HeadraceError as error:
                cause = error
                failed = int(error.context.get("records_lost", "0"))
        if bad is not None:
            raise _stopped(bad, place, sent - failed, cause)
        _report(topic, sent, failed, cause)


def _lines(files: tuple[Path, ...]) -> Iterator[tuple[str, bytes]]:
    """Every line, and where it is."""
    if not files:
        yield from _numbered(sys.stdin.buffer, "stdin")
    for file in files:
        with file.open("rb") as opened:
            yield from _numbered(opened, str(file))


def _numbered(opened: BinaryIO, name: str) -> Iterator[tuple[str, bytes]]:
    # No further than the first byte too many: what has no line feed may have no end.
    lines = iter(lambda: opened.readline(LINE_BYTES_MAX + 1), b"")
    for number, line in enumerate(lines, 1):
        yield f"line {number} of {name}", line.removesuffix(b"\n")


def _stopped(bad: Invalid, place: str, stored: int, cause: HeadraceError | None) -> Invalid:
    """The error of a line that could not be sent: what is there already, and where to go on."""
    bad.message = f"L{place.removeprefix('l')}: {bad.message}"
    if cause is not None:
        # The records before it are not all there: going on at this line would leave a gap.
        bad.message += f"; {count_of(stored, 'record')} stored, then: {cause.message}"
        return bad
    before = f"{count_of(stored, 'record')} before it {'was' if stored == 1 else 'were'} stored"
    bad.hint = f"{before}. Fix the line, then resume at {place}. {bad.hint}".rstrip()
    return bad


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name:
        raise Invalid(f"{text!r} is not NAME:VALUE", hint="Example: -H source:cli")
    return name, value


def _report(topic: str, sent: int, failed: int, cause: HeadraceError | None) -> None:
    out = printer()
    if out.output is None:
        note(f"{count_of(sent - failed, 'record')} stored in {topic}")
    else:
        out.done(
            {"topic": topic, "records": sent - failed, "failed": failed}, COLUMNS, name="topic"
        )
    if cause is None:
        return
    if failed >= sent:
        raise cause
    raise PartialFailure(f"{failed} of {sent} records failed. First error: {cause.message}")
