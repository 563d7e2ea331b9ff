"""Keeps the processes of the layout running, and ends them in order.

One that dies is started again after a back-off, the others go on: that is what systemd does on a
host. `up.json` says at any time what runs and where. Refuses to know what the processes do.
"""

import http.client
import json
import os
import signal
import time
from typing import Final

from api.embedded.ports import HOST
from api.embedded.processes import start_time
from api.embedded.shutdown import Stop
from api.embedded.supervisor import probe
from deploy.production.layout import Layout
from headrace.toml_file import write_whole

TICK_SECONDS: Final = 0.05
STOP_SECONDS: Final = 25.0
PROBE_SECONDS: Final = 2.0
# The database last: whoever works on it would only log that it is gone.
ENDING: Final = (("worker-1", "worker-2", "api-1", "api-2"), ("node-1",), ("postgres",))


class Keeper:
    """The processes of one layout."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._children = layout.children()
        self._stop = Stop()
        self._ready = False

    def run(self) -> str | None:
        """Runs until SIGTERM or SIGINT.

        :returns: why nothing could be started; None after an ordinary end.
        """
        self._stop.on_signals()
        refusal = None
        unwritten = True
        try:
            while not self._stop.wait(TICK_SECONDS) and refusal is None:
                unwritten = self._tend() or unwritten
                if not self._ready:
                    refusal = self._refusal()
                    self._ready = self._answers()
                    unwritten = unwritten or self._ready
                if unwritten:
                    unwritten = not self._write_state()
        finally:
            self._end_all()
            self._layout.directory.state.unlink(missing_ok=True)
        return refusal

    def _tend(self) -> bool:
        now = time.monotonic()
        changed = self._children["postgres"].tend(now)
        if not self._ready and not self._layout.server.answers():
            return changed
        changes = [each.tend(now) for each in self._children.values()]
        return changed or True in changes

    def _refusal(self) -> str | None:
        now = time.monotonic()
        said = (each.refusal(now) for each in self._children.values())
        return next((each for each in said if each is not None), None)

    def _answers(self) -> bool:
        """Whether a client that starts now finds everything working: both APIs and the node, and
        workers that have taken the owner's key to it."""
        ports = self._layout.ports
        if not all(probe(port) for port in (ports.node_http, ports.api_1, ports.api_2)):
            return False
        connection = http.client.HTTPConnection(HOST, ports.api_2, timeout=PROBE_SECONDS)
        try:
            authorization = {"Authorization": f"Bearer {self._layout.owner_key}"}
            connection.request("GET", "/v1/api-keys?page_size=1000", headers=authorization)
            items = json.loads(connection.getresponse().read()).get("items", [])
        except (OSError, http.client.HTTPException, ValueError):
            return False
        finally:
            connection.close()
        public_id = self._layout.owner_key.split("_")[2]
        conditions = [
            (each["type"], each["status"])
            for item in items
            if item["public_id"] == public_id
            for each in item["status"]["conditions"]
        ]
        return ("Active", "True") in conditions

    def _write_state(self) -> bool:
        """False: the disk is full, say. What runs goes on, and it is tried again."""
        layout = self._layout
        state = {
            "layout": 1,
            "state": "ready" if self._ready else "starting",
            "api_url": layout.api_url,
            "bootstrap": layout.bootstrap,
            "supervisor": {"pid": os.getpid(), "start_time": start_time(os.getpid())},
            **{
                name: {
                    "pid": child.process.pid if child.process is not None else None,
                    "restarts": child.restarts,
                    "log": str(child.log_path),
                }
                for name, child in self._children.items()
            },
        }
        try:
            write_whole(layout.directory.state, json.dumps(state, indent=2) + "\n")
        except OSError:
            return False
        return True

    def _end_all(self) -> None:
        for names in ENDING:
            deadline = time.monotonic() + STOP_SECONDS
            running = [self._children[name] for name in names]
            for child in running:
                if child.process is not None:
                    order = signal.SIGINT if child.name == "postgres" else signal.SIGTERM
                    child.process.send_signal(order)
            for child in running:
                child.end(deadline)
