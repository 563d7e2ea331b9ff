"""The life of this process: a number that grows with every start of the node.

Owns data_dir/node.life. Counters are known by (node, life, shard, sequence), so no life may be used
twice: it is durable before the first record that bears it. A file that was lost, with its directory
or alone, is made up for by the clock: a life is never below the seconds since 1970. Refuses a file
that is no number.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from dataplane.evidence.folder import sync_folder

NAME: Final = "node.life"


class LifeDamaged(Exception):
    """The file holds no number."""


class Life:
    """Opened once in a process; `keep` blocks and may be called from any thread."""

    def __init__(self, folder: Path, *, clock: Callable[[], float] = time.time) -> None:
        """Raises LifeDamaged, OSError."""
        self._path: Final = folder / NAME
        self.number: Final = max(_last(self._path) + 1, int(clock()))
        self._is_kept = False

    def keep(self) -> None:
        """Make it durable, once. Raises OSError; then it is not, and may be tried again."""
        if self._is_kept:
            return
        fresh = self._path.with_suffix(".life.new")
        with fresh.open("wb") as file:
            file.write(b"%d\n" % self.number)
            file.flush()
            os.fsync(file.fileno())
        fresh.rename(self._path)
        sync_folder(self._path.parent)
        self._is_kept = True


def _last(path: Path) -> int:
    try:
        text = path.read_bytes().strip()
    except FileNotFoundError:
        return 0
    if not text.isdigit():
        raise LifeDamaged(
            f"{path} holds no number: remove it, and the clock gives the next one; it must not be "
            "behind the time of the last start"
        )
    return int(text)
