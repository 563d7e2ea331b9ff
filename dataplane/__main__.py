"""`python -m dataplane --config FILE`: run one node until SIGTERM.

Exit codes: 0 drained and closed; 2 the configuration or the data directory cannot be used (the text
says why); 1 the node failed or did not drain in time.
"""

import argparse
import asyncio
import json
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from dataplane.data_dir import NodeUnusable
from dataplane.node import Ready
from dataplane.observability.telemetry import configure_logging
from dataplane.settings import NodeSettings, SettingsInvalid, load
from dataplane.supervisor import SIGNALS, run


def main() -> int:
    """Parse the arguments, run the node."""
    parser = argparse.ArgumentParser(prog="python -m dataplane", description="One Headrace node.")
    parser.add_argument("--config", type=Path, required=True, help="headrace.toml")
    arguments = parser.parse_args()
    try:
        settings = load(arguments.config)
        configure_logging(settings.node.log_level)
        return _run(settings)
    except (SettingsInvalid, NodeUnusable) as error:
        print(f"dataplane: {error}", file=sys.stderr)
        return 2


def _run(settings: NodeSettings) -> int:
    """The node in a loop of its own. A second signal never changes its exit code: the loop gives
    its signals back to the system as it closes, or the interpreter does as it ends, and the
    system's default is to end the process. They are blocked, and then ignored.
    """
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            try:
                return runner.run(run(settings, _say_ready))
            finally:
                signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    finally:
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)


def _say_ready(ready: Ready) -> None:
    line = {"ready": True, "grpc_port": ready.grpc_port, "http_port": ready.http_port}
    print(json.dumps(line), flush=True)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """uvloop where it is installed; asyncio's own loop does the same, slower."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop


if __name__ == "__main__":
    sys.exit(main())
