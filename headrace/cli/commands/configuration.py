"""`headrace config explain [KEY]`: which place said a value, and which others were beaten."""

from __future__ import annotations

import click

from headrace.cli.main import Tree
from headrace.cli.options import Verb, printer, value_of
from headrace.cli.output import Column, Row, path
from headrace.settings import KEYS, Candidate, candidates

COLUMNS = (
    Column("key", path("key")),
    Column("source", path("source")),
    Column("value", path("value")),
    Column("used", path("used")),
)
_FLAGS = {"argument url": "--url"}


@click.group(cls=Tree)
def config() -> None:
    """Show where configuration values come from."""


@config.command(cls=Verb)
@click.argument("key", required=False, type=click.Choice(KEYS))
def explain(key: str | None) -> None:
    """Show the sources of a configuration value and the one in use.

    The order of precedence is: flag, environment, profile, default. Secrets are hidden.
    """
    said = candidates(
        value_of("url"),
        bootstrap=value_of("bootstrap"),
        api_url=value_of("api_url"),
        project=value_of("project"),
        profile=value_of("profile"),
    )
    rows = [row for name in ([key] if key else KEYS) for row in _rows(name, said[name])]
    printer().many(rows, COLUMNS, name=lambda row: f"{row['key']} {row['source']}")


def _rows(key: str, places: list[Candidate]) -> list[Row]:
    won = next((place for place in places if place.value), None)
    return [
        {
            "key": key,
            "source": _source(key, place.source),
            "value": "hidden" if key == "key" and place.value else place.value,
            "used": place is won,
        }
        for place in places
    ]


def _source(key: str, source: str) -> str:
    if source == "argument":
        return f"--{key.replace('_', '-')}" if key not in ("key", "tls") else "no flag"
    return _FLAGS.get(source, source)
