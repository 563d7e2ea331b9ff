"""`--watch[=2s]` of list and describe: the same verb again and again, until Ctrl-C.

On a terminal each look replaces the one before; elsewhere each is one JSON document on one line,
unless another format was asked for.
"""

from __future__ import annotations

import contextlib
import io
import sys
import time

import click

from headrace.cli.options import Verb, remembered_option, value_of
from headrace.cli.output import note
from headrace.errors import Invalid, Retryable
from headrace.transport.retry import seconds

PAUSE = "2s"
PAUSE_SECONDS_MIN = 0.05
CLEAR = "\x1b[H\x1b[2J"


class WatchedVerb(Verb):
    """A command that can be watched."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self.params.append(
            remembered_option(
                "--watch",
                text=f"Refresh every {PAUSE}, or at the given interval: --watch=500ms.",
                metavar="[=DURATION]",
            )
        )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """A bare --watch means the usual pause, and never eats the argument behind it."""
        return super().parse_args(ctx, [f"--watch={PAUSE}" if a == "--watch" else a for a in args])

    def invoke(self, ctx: click.Context) -> object:
        """Once, or until interrupted."""
        every = value_of("watch")
        if every is None:
            return super().invoke(ctx)
        pause = _pause(every)
        while True:
            held = _Held(sys.stdout.isatty())
            try:
                with contextlib.redirect_stdout(held):
                    super().invoke(ctx)
            except Retryable as error:
                # A service that restarts is what people watch for.
                note(f"error: {error}")
            else:
                sys.stdout.write((CLEAR if held.isatty() else "") + held.getvalue())
                sys.stdout.flush()
            time.sleep(pause)


class _Held(io.StringIO):
    """One look, shown whole: a screen that is cleared first and filled later flickers."""

    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


def _pause(text: str) -> float:
    pause = seconds(text)
    if pause < PAUSE_SECONDS_MIN:
        raise Invalid(f"--watch={text} is too short", hint='The minimum is "50ms".')
    return pause
