"""`headrace down`: ends what `headrace up` started, and waits until it has ended."""

import signal
import time
from pathlib import Path
from typing import Final

import click

from api.embedded.directory import Directory
from api.embedded.processes import running, send, start_time
from headrace.cli.options import Verb, printer
from headrace.cli.output import Column, path
from headrace.errors import HeadraceError

STOP_SECONDS: Final = 30.0
POLL_SECONDS: Final = 0.05

COLUMNS: Final = (Column("directory", path("directory")), Column("stopped", path("stopped")))


class StopFailed(HeadraceError):
    """The service did not end in time."""

    code = "STOP_FAILED"


@click.command(cls=Verb)
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(".headrace"),
    show_default=True,
    help="Data directory of `headrace up`.",
)
def down(folder: Path) -> None:
    """Drain and stop the control plane and the node. Data is kept."""
    directory = Directory(folder.absolute())
    present = running(directory.state)
    if present is None:
        _tell(directory, stopped=False)
        return
    send(present.pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_SECONDS
    while start_time(present.pid):
        if time.monotonic() > deadline:
            raise StopFailed(
                f"Process {present.pid} did not exit within {STOP_SECONDS:.0f} s",
                hint=f"Check {directory.logs}; to force it to exit, run: kill -9 {present.pid}",
            )
        time.sleep(POLL_SECONDS)
    _tell(directory, stopped=True)


def _tell(directory: Directory, *, stopped: bool) -> None:
    out = printer()
    if out.output is None:
        click.echo("Stopped." if stopped else "The service is not running.")
    else:
        out.one({"directory": str(directory.root), "stopped": stopped}, COLUMNS, name="directory")
