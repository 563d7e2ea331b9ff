"""The options that every verb shares, accepted before and after it, and the connection they make.

Values given after the verb win over those before it. They live in the context's `meta`, which
nested contexts share.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import click

from headrace.cli.output import FORMATS, Printer, note
from headrace.cli.template import PREFIX, Template
from headrace.errors import Invalid
from headrace.settings import Settings, resolve

if TYPE_CHECKING:
    from headrace.client import Client

_PREFIX = "headrace."
F = TypeVar("F", bound=Callable[..., object])


def _remember(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    if value is not None and parameter.name is not None:
        context.meta[_PREFIX + parameter.name] = value


class OutputFormat(click.Choice[str]):
    """One of the formats, or `template=TEXT`, whose form is checked before anything is asked."""

    def __init__(self) -> None:
        super().__init__((*FORMATS, f"{PREFIX}TEXT"))

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The format as it was given."""
        if not value.startswith(PREFIX):
            return super().convert(value, param, ctx)
        try:
            Template(value.removeprefix(PREFIX))
        except Invalid as error:
            self.fail(str(error), param, ctx)
        return value


def remembered_option(
    *declarations: str,
    choices: tuple[str, ...] | OutputFormat = (),
    text: str,
    metavar: str = "",
) -> click.Option:
    """An option whose value is kept for `value_of` instead of being passed to the command."""
    kind = click.Choice(choices) if isinstance(choices, tuple) else choices
    return click.Option(
        list(declarations),
        type=kind if choices else click.STRING,
        metavar=metavar or None,
        expose_value=False,
        is_eager=True,
        callback=_remember,
        help=text,
    )


def shared() -> list[click.Parameter]:
    """Fresh copies of the shared options."""
    return [
        remembered_option(
            "-o",
            "--output",
            choices=OutputFormat(),
            text="Output format. The default depends on the terminal.",
        ),
        remembered_option("--profile", text="Configuration profile to use.", metavar="NAME"),
        remembered_option(
            "--url", text="Service URL: headrace://KEY@HOST:PORT/PROJECT.", metavar="URL"
        ),
        remembered_option(
            "--bootstrap", text="Node addresses: HOST:PORT,HOST:PORT,...", metavar="ADDRESSES"
        ),
        remembered_option("--api-url", text="URL of the REST API.", metavar="URL"),
        remembered_option(
            "--project", text="Project. Default: the project of the API key.", metavar="NAME"
        ),
        remembered_option(
            "--color", choices=("auto", "always", "never"), text="When to use color."
        ),
    ]


class Verb(click.Command):
    """A command with the shared options."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self.params.extend(shared())


def value_of(name: str) -> str | None:
    """A shared option, as it was given."""
    found = click.get_current_context().meta.get(_PREFIX + name)
    return found if isinstance(found, str) else None


def settings() -> Settings:
    """The resolved configuration of this invocation."""
    return resolve(
        value_of("url"),
        bootstrap=value_of("bootstrap"),
        api_url=value_of("api_url"),
        project=value_of("project"),
        profile=value_of("profile"),
    )


class _Notes(logging.Handler):
    """Shows people what the library says while it waits."""

    def emit(self, record: logging.LogRecord) -> None:
        note(record.getMessage())


def client() -> Client:
    """A client of this invocation; use it with `with`."""
    from headrace.client import Client
    from headrace.transport.io_thread import waiting

    if not waiting.handlers:
        waiting.addHandler(_Notes())
        waiting.setLevel(logging.INFO)
    return Client(settings())


def printer() -> Printer:
    """Where data goes, in the format that was asked for."""
    return Printer(
        value_of("output"), value_of("color") or "auto", repeated=value_of("watch") is not None
    )
