"""`headrace up`: everything on this machine, without Docker: control plane, node, keys, profile."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import click
from alembic.util import CommandError
from sqlalchemy.exc import DatabaseError

from api.db.exclusive import Exclusive, InUseError
from api.embedded.directory import LOGS, Directory
from api.embedded.flights import check_flights
from api.embedded.installation import Installation, check_records, install, owner_token
from api.embedded.overrides import HELP, overrides_of
from api.embedded.password import another_password
from api.embedded.ports import choose_ports
from api.embedded.processes import Running, running
from api.embedded.supervisor import Supervisor, last_line
from headrace.cli.options import Verb, printer, value_of
from headrace.cli.output import Column, note, path
from headrace.errors import ConfigurationInvalid, Conflict, HeadraceError
from headrace.profiles import config_path

READY_SECONDS: Final = 60.0
POLL_SECONDS: Final = 0.05

COLUMNS: Final = (
    Column("API", path("api_url")),
    Column("Console", path("console_url")),
    Column("Node", path("bootstrap")),
    Column("Data", path("directory")),
)


class StartFailed(HeadraceError):
    """The service did not come up."""

    code = "START_FAILED"


@click.command(cls=Verb, epilog=HELP)
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(".headrace"),
    show_default=True,
    help="Data directory.",
)
@click.option(
    "--detach", is_flag=True, help="Return when the service is ready. Stop it with `headrace down`."
)
@click.option(
    "--port",
    type=click.IntRange(0, 65533),
    help="Port of the API; the node uses the next two ports. 0 selects free ports.",
)
@click.option(
    "--metering-window",
    type=click.Choice(["1", "2", "3", "4", "5", "6", "10", "12", "15", "20", "30", "60"]),
    help="Metering window in seconds. Default: the value in headrace.toml, or 60.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="SECTION.KEY=VALUE",
    help="Override a setting from the list below for this run. Repeatable.",
)
@click.option(
    "--demo",
    is_flag=True,
    help="Replay a year of flight data into the topic `flights` while the service runs.",
)
@click.option(
    "--new-password",
    is_flag=True,
    help="Set a new console password and end all console sessions.",
)
def up(
    folder: Path,
    detach: bool,
    port: int | None,
    metering_window: str | None,
    settings: Sequence[str],
    demo: bool,
    new_password: bool,
) -> None:
    """Start a control plane and a node, and write the profile that other commands use."""
    directory = Directory(folder.absolute())
    directory.check()
    present = running(directory.state)
    if present is not None:
        # Twice is once: the second call finds what it asked for.
        changes = settings or metering_window is not None or port not in (None, 0, present.port)
        _again(present, directory, changed=bool(changes) or (demo and not present.demo))
        if new_password:
            _tell_password(another_password(present.api_url, owner_token(directory)))
        _announce(present.api_url, present.bootstrap, directory)
        return
    overrides = overrides_of(settings)
    if metering_window is not None:
        overrides["HEADRACE_METERING__WINDOW_SECONDS"] = metering_window
    if demo:
        check_flights()
    ports = choose_ports(port, directory.configured("api"), directory.configured("node"))
    # Only now is anything written: a port that is taken must not leave a folder behind.
    directory.claim()
    with _refusals(directory), Exclusive(directory.state) as alone:
        installation = install(
            directory,
            ports,
            window_seconds=int(metering_window or 60),
            profile_path=config_path(os.environ),
            profile=value_of("profile") or "default",
            new_console_password=new_password,
        )
        variable = "HEADRACE_NODE__DATA_DIR"
        check_records(directory, overrides.get(variable, os.environ.get(variable, "")))
        os.environ.update({**overrides, **ports.overrides()})
        places = (installation.api_url, installation.bootstrap, directory)
        _tell_password(installation.console_password)
        if detach:
            _detached(installation, alone, demo=demo)
            _announce(*places)
            return
        supervisor = Supervisor(installation, lambda: _announce(*places), demo=demo)
        supervisor.run()
    if supervisor.refusal is not None:
        raise _start_failed(supervisor.refusal, directory)


def _again(present: Running, directory: Directory, *, changed: bool) -> None:
    """Reports that the folder's service is already running."""
    if present.state != "ready":
        raise Conflict(
            f"The service is not ready: {present.state}, process {present.pid}",
            code="ALREADY_RUNNING",
            hint=f"Wait, or stop it with: headrace down --dir {directory.root}",
        )
    if changed:
        note("The service is already running. To change its settings, run `headrace down` first.")


def _tell_password(password: str | None) -> None:
    """Says a password that was just made, if one was."""
    if password is not None:
        note(f"Console password, shown only once: {password}")


@contextlib.contextmanager
def _refusals(directory: Directory) -> Iterator[None]:
    """What the database says against a start, as errors of the command line."""
    try:
        yield
    except InUseError:
        raise Conflict(
            f"Another process is using {directory.root}",
            code="ALREADY_RUNNING",
            hint="It is starting, or stopping after its supervisor was killed. Wait, or run: "
            f"headrace down --dir {directory.root}",
        ) from None
    except CommandError as error:
        raise ConfigurationInvalid(
            f"{directory.database} was created by another release: {error}",
            code="LAYOUT_UNKNOWN",
            hint="Use the release that created it, or another --dir",
        ) from None
    except DatabaseError as error:
        raise ConfigurationInvalid(
            f"{directory.database} cannot be used: {error.orig}",
            hint="Check if the disk is full or read-only. Restore a damaged database from a backup",
        ) from None


def _announce(api_url: str, bootstrap: str, directory: Directory) -> None:
    found = {
        "api_url": api_url,
        "console_url": f"{api_url}/console/",
        "bootstrap": bootstrap,
        "directory": str(directory.root),
    }
    printer().one(found, COLUMNS, name="directory")
    sys.stdout.flush()


def _detached(installation: Installation, alone: Exclusive, *, demo: bool) -> None:
    """Starts the supervisor on its own, to which the folder's lock goes over, and returns when it
    says that everything is ready."""
    directory, ports = installation.directory, installation.ports
    command = [
        sys.executable, "-m", "api.embedded.supervisor", "--dir", str(directory.root),
        "--api-port", str(ports.api), "--node-port", str(ports.node),
        "--node-http-port", str(ports.node_http), *(["--demo"] if demo else []),
    ]  # fmt: skip
    log_path = directory.logs / "supervisor.log"
    begun = {name: directory.log_size(name) for name in LOGS}
    with log_path.open("ab") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=(alone.descriptor,),
        )
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        present = running(directory.state)
        if present is not None and present.pid == process.pid and present.state == "ready":
            return
        if process.poll() is not None:
            said = last_line(log_path, begun["supervisor"])
            if said:
                raise _start_failed(said, directory)
            break
        time.sleep(POLL_SECONDS)
    ended = process.poll() is not None
    process.terminate()
    process.wait()
    for name, begin in begun.items():
        for line in directory.log_tail(name, begin):
            note(f"{name}: {line}")
    raise _start_failed(
        "The supervisor exited" if ended else f"Not ready after {READY_SECONDS:.0f} s", directory
    )


def _start_failed(why: str, directory: Directory) -> StartFailed:
    return StartFailed(why, hint=f"Check the logs in {directory.logs}")
