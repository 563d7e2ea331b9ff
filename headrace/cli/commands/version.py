"""`headrace version`."""

from __future__ import annotations

import platform

import click

from headrace.cli.options import Verb, printer
from headrace.cli.output import Column, path
from headrace.version import VERSION


@click.command(cls=Verb)
def version() -> None:
    """Print version information."""
    found = {"name": "headrace", "version": VERSION, "python": platform.python_version()}
    columns = (Column("headrace", path("version")), Column("python", path("python")))
    printer().one(found, columns, name="version")
