"""A small disk of its own for a node: a tmpfs that can be filled and turned read-only.

It is mounted inside a mount namespace that one waiting process holds, so that it is gone with that
process however a test ends, and nobody else ever sees it. Without root the namespace is a user's
own. In a chroot, whose root is no mount of its own, nothing can be made private: there the disk is
unmounted at the end. Nodes enter by the command that `program` gives; tests look in through /proc.
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
        self._chrooted = False
        options = f"size={size_mib}m,mode=0700"
        self._mount = f'mount -t tmpfs -o {options} disk "$0" && echo mounted && exec cat'
        mounted = self._hold(ROOT_FLAGS if self._unprivileged else ())
        if not mounted and not self._unprivileged:
            self._chrooted = mounted = self._hold(("--propagation", "unchanged"))
        assert mounted, "no tmpfs could be mounted"
        self.seen = Path(f"/proc/{self._holder.pid}/root{path}")

    def _hold(self, flags: Sequence[str]) -> bool:
        """Start the process that holds the namespace. False: the disk could not be mounted."""
        self._holder = subprocess.Popen(
            ["unshare", *flags, "--mount", "sh", "-c", self._mount, str(self.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._holder.stdout is not None
        if self._holder.stdout.readline() == b"mounted\n":
            return True
        self._end()
        return False

    def _end(self) -> None:
        self._holder.kill()
        self._holder.communicate()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._chrooted:
            subprocess.run(self.program("umount", "--lazy", str(self.path)), check=True)
        self._end()

    def program(self, *command: str) -> Sequence[str]:
        """A command that runs where the disk is mounted."""
        flags = ["--user", "--preserve-credentials"] if self._unprivileged else []
        # Entering leaves a chroot, unless told to go where the holder is.
        flags += ["--root"] if self._chrooted else []
        return ("nsenter", f"--target={self._holder.pid}", *flags, "--mount", "--", *command)

    @property
    def node(self) -> Sequence[str]:
        """A node that sees the disk."""
        return self.program(sys.executable, "-m", "dataplane")

    def fill(self, left: int = 0) -> None:
        """Fill the disk up to `left` bytes, even while others write."""
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
        """Free what `fill` has used."""
        (self.seen / "filler").unlink()

    def remount(self, option: str) -> None:
        """Remount `ro` or `rw`, even while files are open."""
        command = self.program("mount", "-o", f"remount,bind,{option}", str(self.path))
        subprocess.run(command, check=True, timeout=120)
