"""What a benchmark stands on: programs in C, the machine's limits, the CPU a process has used."""

import json
import os
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "bench"
LIMIT_SECONDS = 0.5

Figures = dict[str, float]


def built(name: str, library: str) -> Path:
    """The program made from NAME.c beside this file."""
    program = FOLDER / name
    source = Path(__file__).with_name(f"{name}.c")
    flags = ["-std=gnu11", "-D_GNU_SOURCE", "-O2", "-pthread"]
    subprocess.run(["cc", *flags, str(source), f"-l{library}", "-o", str(program)], check=True)
    return program


def said(*command: str | Path) -> Figures:
    """The JSON object that a program prints."""
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    figures: Figures = json.loads(done.stdout)
    return figures


def machine_limits() -> Figures:
    """What the machine allows right now: writes a second and MB/s, by limit.c."""
    return said(built("limit", "isal"), FOLDER, str(LIMIT_SECONDS))


def cpu_seconds(pid: int) -> float:
    """What getrusage tells a process of itself, user and system together, to the nanosecond and
    from outside: its CPU clock (clock_getcpuclockid)."""
    return time.clock_gettime((~pid << 3) | 2)


def load_of_machine() -> float:
    """Runnable processes over the last minute: what the figures were measured beside."""
    return os.getloadavg()[0]
