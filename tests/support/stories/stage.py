"""Where the acts of the demo play: a running platform, and what the acts leave for each other."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import headrace
from tests.support.processes.platform import Platform

LOG_LINES_MAX = 30
ROUTINE = '"level": "info"'

Figures = dict[str, int | float | str]


@dataclass(slots=True)
class Stage:
    """The platform, the topics that were filled, and the reports that were made."""

    platform: Platform
    topics: list[str] = field(default_factory=list)
    reports: list[Path] = field(default_factory=list)

    def connect(self) -> headrace.Client:
        """A client as a user would have it, from the profile that `up` wrote."""
        profile = self.platform.profile()
        return headrace.connect(
            api_url=profile.api_url, bootstrap=profile.bootstrap, key=profile.key
        )

    def log_tails(self) -> list[str]:
        """The last lines of every process that tell of more than routine."""
        lines: list[str] = []
        for log in sorted((self.platform.data / "logs").glob("*")):
            lines.append(f"--- {log.name}")
            told = log.read_text(errors="replace").splitlines()
            lines.extend([line for line in told if ROUTINE not in line][-LOG_LINES_MAX:])
        return lines


Act = Callable[[Stage], tuple[Figures, str]]


def account(rows: Iterable[int], count: int) -> tuple[int, int]:
    """(duplicates, missing) of rows that should be 0..count-1, once each."""
    seen = Counter(rows)
    duplicates = sum(times - 1 for times in seen.values())
    missing = sum(1 for row in range(count) if row not in seen)
    return duplicates, missing
