"""A small disk of its own for a node: a tmpfs that can be filled and turned read-only.

It is mounted inside a mount namespace that one waiting process holds, so that it is gone with that
process however a test ends, and nobody else ever sees it. Without root the namespace is a user's
own. Nodes enter it by the command that `program` gives; tests look into it through /proc.
"""

import errno
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

BLOCK: Final = 1 << 20
ROOT_FLAGS: Final = ("--user", "--map-root-user")


class Disk:
    """A file system of `size_mib`, mounted at `path` for nodes and seen at `seen` by tests."""

    def __init__(self, path: Path, size_mib: int) -> None:
        path.mkdir()
        self.path = path
        self._unprivileged = os.geteuid() != 0
        options = f"size={size_mib}m,mode=0700"
        mount = f'mount -t tmpfs -o {options} disk "$0" && echo mounted && exec cat'
        flags = ROOT_FLAGS if self._unprivileged else ()
        self._holder = subprocess.Popen(
            ["unshare", *flags, "--mount", "sh", "-c", mount, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._holder.stdout is not None
        assert self._holder.stdout.readline() == b"mounted\n", "no tmpfs could be mounted"
        self.seen = Path(f"/proc/{self._holder.pid}/root{path}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._holder.kill()
        self._holder.communicate()

    def program(self, *command: str) -> Sequence[str]:
        """A command that runs where the disk is mounted."""
        flags = ("--user", "--preserve-credentials") if self._unprivileged else ()
        return ("nsenter", f"--target={self._holder.pid}", *flags, "--mount", "--", *command)

    @property
    def node(self) -> Sequence[str]:
        """A node that sees the disk."""
        return self.program(sys.executable, "-m", "dataplane")

    def fill(self, left: int = 0) -> None:
        """Take all space but `left` bytes, although others may write meanwhile."""
        with (self.seen / "filler").open("ab", buffering=0) as filler:
            while True:
                found = os.statvfs(self.seen)
                size = min(BLOCK, found.f_bavail * found.f_frsize - left)
                if size <= 0:
                    return
                try:
                    filler.write(bytes(size))
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    return

    def free(self) -> None:
        """Give what `fill` took back."""
        (self.seen / "filler").unlink()

    def remount(self, option: str) -> None:
        """`ro` or `rw`, under whoever has files open."""
        command = self.program("mount", "-o", f"remount,bind,{option}", str(self.path))
        subprocess.run(command, check=True, timeout=30)
