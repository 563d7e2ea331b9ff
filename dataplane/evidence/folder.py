"""A folder's entries on disk: files made, renamed or removed in it are durable once it is synced.

Owns one call. Refuses to hide a failure: what became of the entries is then unknown.
"""

import os
from pathlib import Path


def sync_folder(path: Path) -> None:
    """Make the entries of a folder durable. Blocks. Raises OSError."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
