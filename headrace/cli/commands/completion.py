"""`headrace completion bash|zsh|fish`, and the names that complete: live ones, kept for 30 s.

If a completion fails, it offers no names and prints no error.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from headrace.cli.options import Verb, printer, settings
from headrace.cli.output import Column, path
from headrace.errors import HeadraceError
from headrace.settings import Settings
from headrace.toml_file import write_whole

KEPT_SECONDS = 30.0
ANSWER_SECONDS = 2.0
NAMES_MAX = 200


@click.command(cls=Verb)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script for a shell.

    \b
    bash: headrace completion bash > ~/.local/share/bash-completion/completions/headrace
    zsh:  headrace completion zsh > ~/.zfunc/_headrace
    fish: headrace completion fish > ~/.config/fish/completions/headrace.fish
    """
    from headrace.cli.main import COMPLETION_VARIABLE, root

    made = get_completion_class(shell)
    assert made is not None
    # Not source(): that one asks the bash of this machine for its version, and warns on stdout.
    complete = made(root, {}, "headrace", COMPLETION_VARIABLE)
    script = complete.source_template % complete.source_vars()
    if printer().for_people:
        click.echo(script, nl=not script.endswith("\n"))
    else:
        row = {"shell": shell, "script": script}
        printer().one(row, (Column("shell", path("shell")),), name="shell")


def topic_names(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Topics with this prefix. Sends no request within 30 s of the last answer."""
    try:
        with context.scope(cleanup=False):
            names = _kept(settings())
    except (HeadraceError, OSError, ValueError):
        return []
    return [name for name in names if name.startswith(incomplete)]


def _kept(found: Settings) -> list[str]:
    # The file name differs by service and key; a digest does not reveal the key.
    whose = json.dumps([found.api_url, found.project, found.key or ""])
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    place = Path(base) / "headrace" / f"topics-{hashlib.sha256(whose.encode()).hexdigest()[:24]}"
    if place.exists() and time.time() - place.stat().st_mtime < KEPT_SECONDS:
        return place.read_text().splitlines()
    names = _ask(found)
    place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_whole(place, "".join(f"{name}\n" for name in names), mode=0o600)
    return names


def _ask(found: Settings) -> list[str]:
    from headrace.client import Client

    with Client(found) as client:
        params = {"page_size": str(NAMES_MAX)}
        answer = client.admin.request("GET", "/topics", params=params, timeout=ANSWER_SECONDS)
    items = answer.get("items")
    topics = [t for t in items if isinstance(t, dict)] if isinstance(items, list) else []
    return sorted(
        str(t["name"]) if t["stream"] == "default" else f"{t['stream']}/{t['name']}" for t in topics
    )
