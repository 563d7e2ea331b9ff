"""Which process a state file speaks of: its number alone may belong to another one by now."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Running:
    """A supervisor that runs, and what it says of itself."""

    pid: int
    state: str
    api_url: str
    bootstrap: str
    demo: bool = False

    @property
    def port(self) -> int | None:
        """Of the API."""
        return urlsplit(self.api_url).port


def start_time(pid: int) -> str:
    """When a process began, in the kernel's ticks; empty if there is none."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    # A zombie has ended; only its parent has not looked yet.
    return "" if fields[0] == "Z" else fields[19]


def running(state_path: Path) -> Running | None:
    """The supervisor of a state file, if that very process still runs."""
    if not state_path.is_file():
        # To open a pipe would wait for ever.
        return None
    try:
        state = json.loads(state_path.read_text())
        pid = int(state["supervisor"]["pid"])
        began = str(state["supervisor"]["start_time"])
        found = Running(
            pid,
            str(state["state"]),
            str(state["api_url"]),
            str(state["bootstrap"]),
            "demo" in state,
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if began and start_time(pid) == began else None


def send(pid: int, number: int) -> None:
    """Sends a signal to a process that may have ended meanwhile."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
