"""A node's disk that fails and its clock that jumps, on command, while it runs.

Owns the library that is preloaded into the node (faults.c, compiled here) and the small file in
which both sides see what shall fail. Real kernels answer the same way, at moments nobody chooses.
"""

import mmap
import os
import struct
import subprocess
from pathlib import Path
from typing import Final

SOURCE: Final = Path(__file__).with_name("faults.c")
FLAGS: Final = "-std=gnu11 -D_GNU_SOURCE -shared -fPIC -O1 -Wall -Werror".split()
# struct faults: wall_seconds, errno of syncs, writes, reads and opens, fired, part of a path.
_LAYOUT: Final = struct.Struct("<q4iQ64s")
_FIRED_AT: Final = 24


class Faults:
    """What fails in the nodes that are started with `environment`."""

    def __init__(self, folder: Path) -> None:
        library = folder / "faults.so"
        subprocess.run(
            ["gcc", *FLAGS, "-o", library, SOURCE, "-ldl"],
            check=True,
            timeout=120,
        )
        path = folder / "faults"
        path.write_bytes(bytes(_LAYOUT.size))
        self._file = path.open("r+b")
        self._mapped = mmap.mmap(self._file.fileno(), _LAYOUT.size)
        self.environment = {"LD_PRELOAD": str(library), "FAULTS_FILE": str(path)}

    def set(
        self,
        part: str = "",
        *,
        wall_seconds: int = 0,
        sync: int = 0,
        write: int = 0,
        read: int = 0,
        opening: int = 0,
    ) -> None:
        """From now on: an errno for each kind of call (0 = works) on paths that hold `part`."""
        # The part first: an errno that is seen with an older part would hit other files.
        whole = _LAYOUT.pack(wall_seconds, sync, write, read, opening, self.fired, part.encode())
        self._mapped[_FIRED_AT + 8 :] = whole[_FIRED_AT + 8 :]
        self._mapped[:_FIRED_AT] = whole[:_FIRED_AT]

    @property
    def fired(self) -> int:
        """How many calls have failed so."""
        return int(struct.unpack_from("<Q", self._mapped, _FIRED_AT)[0])

    def close(self) -> None:
        """Give the mapping back."""
        self._mapped.close()
        self._file.close()
        os.unlink(self._file.name)
