"""The node's boot number, which grows with every start of the process.

Owns data_dir/node.life. Counters are identified by (node, boot, shard, sequence), so no number may
be used twice: it is durable before the first record that bears it. If the file is lost, with its
directory or alone, the clock replaces it: the number is never below the seconds since 1970. Refuses
a file that is no number.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from dataplane.evidence.folder import sync_folder

NAME: Final = "node.life"


class BootDamaged(Exception):
    """The file holds no number."""


class Boot:
    """The boot number of this process; `keep` blocks and may be called from any thread."""

    def __init__(self, folder: Path, *, clock: Callable[[], float] = time.time) -> None:
        """Raises BootDamaged, OSError."""
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
        raise BootDamaged(
            f"{path} holds no number: remove it, and the clock gives the next one; it must not be "
            "behind the time of the last start"
        )
    return int(text)
