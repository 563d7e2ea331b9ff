"""`python -m deploy.production`: starts the layout; `headrace down --dir` ends it.

    python -m deploy.production [--dir build/production] [--port 8460]

Returns when everything serves. It goes on by itself, with its logs in the folder. The console's
password is printed the first time only, on standard error.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from api.db.exclusive import Exclusive, InUseError
from api.embedded.processes import running
from api.embedded.supervisor import last_line
from deploy.production.layout import PROFILE, Layout
from deploy.production.supervisor import Keeper
from headrace.errors import HeadraceError

ROOT: Final = Path(__file__).resolve().parents[2]
READY_SECONDS: Final = 120.0
POLL_SECONDS: Final = 0.05


def main() -> int:
    """Starts everything, or (--keep) is the process that keeps it running."""
    parser = argparse.ArgumentParser(
        prog="python -m deploy.production",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--dir", type=Path, default=ROOT / "build" / "production")
    parser.add_argument("--port", type=int, help="the first of five in a row; 0: free ones")
    parser.add_argument("--keep", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    try:
        layout = Layout.of(chosen.dir.absolute(), chosen.port)
        return _keep(layout) if chosen.keep else _up(layout)
    except HeadraceError as error:
        print(f"{error.code}: {error}", file=sys.stderr)
        if error.hint:
            print(error.hint, file=sys.stderr)
    except InUseError:
        print(f"Another process is using {chosen.dir}: run make down PRODUCTION=1", file=sys.stderr)
    return 1


def _up(layout: Layout) -> int:
    present = running(layout.directory.state)
    if present is not None and present.state == "ready":
        _announce(layout)
        return 0
    layout.directory.claim()
    with Exclusive(layout.directory.state) as alone:
        password = layout.prepare()
        if password is not None:
            print(f"Console password, shown only once: {password}", file=sys.stderr)
        keeper = _detached(layout, alone.descriptor)
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline and keeper.poll() is None:
        present = running(layout.directory.state)
        if present is not None and present.pid == keeper.pid and present.state == "ready":
            _announce(layout)
            return 0
        time.sleep(POLL_SECONDS)
    keeper.terminate()
    keeper.wait()
    said = last_line(layout.directory.log("keeper")) or "Not everything answers"
    print(f"START_FAILED: {said}\nThe logs are in {layout.directory.logs}", file=sys.stderr)
    return 1


def _detached(layout: Layout, lock: int) -> subprocess.Popen[bytes]:
    """The process that keeps the others, on its own; the folder's lock goes over to it."""
    with layout.directory.log("keeper").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "deploy.production", "--keep", "--dir",
             str(layout.directory.root)],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=(lock,),
        )  # fmt: skip


def _keep(layout: Layout) -> int:
    refusal = Keeper(layout).run()
    if refusal is not None:
        print(refusal, file=sys.stderr)
    return 0 if refusal is None else 1


def _announce(layout: Layout) -> None:
    ports = layout.ports
    print(f"API      http://127.0.0.1:{ports.api_1}  http://127.0.0.1:{ports.api_2}")
    print(f"Console  {layout.api_url}/console/")
    print(f"Node     {layout.bootstrap}")
    print(f"Profile  {PROFILE}: export HEADRACE_PROFILE={PROFILE}")
    print(f"Data     {os.path.relpath(layout.directory.root)}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
