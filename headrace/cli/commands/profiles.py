"""`headrace profile list|current|use|create`: services by name, without printing a key."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from headrace.cli.main import Tree
from headrace.cli.options import Verb, printer, value_of
from headrace.cli.output import Column, Row, note, path
from headrace.cli.watch import WatchedVerb
from headrace.errors import Conflict, Invalid
from headrace.profiles import (
    Members,
    config_path,
    read_profiles,
    unknown_profile,
    use_profile,
    write_profile,
)
from headrace.settings import KEYS, Candidate, candidates, resolve, winner

COLUMNS = (
    Column("name", path("name")),
    Column("current", path("current")),
    Column("api_url", path("api_url")),
    Column("bootstrap", path("bootstrap")),
    Column("project", path("project")),
    Column("key", path("key")),
)


@click.group(cls=Tree)
def profile() -> None:
    """Manage connection profiles, stored in $XDG_CONFIG_HOME/headrace/config.toml."""


@profile.command("list", cls=WatchedVerb)
def list_profiles() -> None:
    """List profiles. Keys are hidden."""
    found = read_profiles(config_path(os.environ))
    rows = [_row(each, found.members[each], found.current) for each in sorted(found.members)]
    printer().many(rows, COLUMNS)


@profile.command(cls=Verb)
def current() -> None:
    """Show the profile in effect: --profile, HEADRACE_PROFILE, or the current profile."""
    found = read_profiles(config_path(os.environ))
    name = value_of("profile") or os.environ.get("HEADRACE_PROFILE") or found.current
    # Says what is wrong with a profile that is not there.
    resolve(profile=name if name in found.members or name != "default" else None)
    printer().one(_row(name, found.members.get(name, {}), name), COLUMNS)


@profile.command(cls=Verb)
@click.argument("name")
def use(name: str) -> None:
    """Set the current profile."""
    where = config_path(os.environ)
    use_profile(where, name)
    printer().done(_row(name, read_profiles(where).members[name], name), COLUMNS)


@profile.command(cls=Verb)
@click.argument("name")
@click.option(
    "--key-file",
    type=click.Path(dir_okay=False, allow_dash=True),
    help="File that contains the API key; - reads stdin. Default: HEADRACE_KEY.",
)
@click.option(
    "--like", metavar="NAME", help="Copy other values, except the key, from this profile."
)
@click.option("--replace", is_flag=True, help="Replace an existing profile.")
def create(name: str, key_file: str | None, like: str | None, replace: bool) -> None:
    """Create a profile from --api-url, --bootstrap, --project or --url, and an API key.

    There is no option for the key itself: other users of the machine can see arguments.
    """
    where = config_path(os.environ)
    found = read_profiles(where)
    if name in found.members and not replace:
        raise Conflict(
            f'Profile "{name}" already exists', code="NAME_TAKEN", hint="Pass --replace."
        )
    if like is not None and like not in found.members:
        raise unknown_profile(like, where, found)
    said = candidates(
        value_of("url"),
        bootstrap=value_of("bootstrap"),
        api_url=value_of("api_url"),
        project=value_of("project"),
        key=_key(key_file),
    )
    beside = found.members[like] if like is not None else {}
    chosen = {member: _chosen(member, said[member], beside) for member in KEYS}
    members = {member: value for member, value in chosen.items() if value not in ("", "false")}
    write_profile(where, name, members)
    printer().done(_row(name, {**members}, found.current), COLUMNS)
    note(f"Make it the current profile with: headrace profile use {name}")


def _chosen(member: str, places: list[Candidate], like: Members) -> str:
    """What was given; else what the profile beside says, never its key; else the default. What the
    profile in use says must not slip into another unasked."""
    given = [place for place in places if not place.source.startswith("profile ")]
    beside = "" if member == "key" else str(like.get(member, ""))
    return winner([*given[:-1], Candidate("like", beside), given[-1]])


def _key(key_file: str | None) -> str | None:
    if key_file is None:
        return None
    content = sys.stdin.buffer.read() if key_file == "-" else Path(key_file).read_bytes()
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise Invalid(
            "The key file is not text", hint="It must contain one line: hr_user_..."
        ) from None
    if not text.strip():
        raise Invalid("The key file is empty")
    return text.strip()


def _row(name: str, members: Members, current: str) -> Row:
    shown = {member: value for member, value in members.items() if member != "key"}
    key = "hidden" if members.get("key") else "none"
    return {"name": name, "current": name == current, **shown, "key": key}
