"""The files of a result, each with its digest, below the folder of reports.

A path may not leave that folder and a digest may not differ; otherwise nothing is loaded.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from api.http.errors import ResultRejectedError
from api.jobs.result import PublishedFile

FILE_BYTES_MAX: Final = 2 << 30
CHUNK_BYTES: Final = 1 << 20


def folder_of(uri: str) -> Path:
    """The folder of ``reports.uri``: a path or a file:// URL."""
    parts = urlsplit(uri)
    if parts.scheme not in ("", "file"):
        raise ValueError(f"reports.uri must be a folder or a file:// URL, not {parts.scheme}://")
    return Path(unquote(parts.path))


def checked_files(
    root: Path, path: str, files: Sequence[PublishedFile], wanted: Sequence[str]
) -> dict[str, str]:
    """The texts of the wanted files, once every file of a manifest is there with its digest.

    Files are large: this is for before a transaction begins. Of those that are not wanted no more
    than CHUNK_BYTES is in memory at once.
    """
    root = root.absolute()
    folder = (root / folder_of(path)).resolve()
    if not folder.is_relative_to(root.resolve()):
        raise ResultRejectedError(
            "The path of the result is outside the folder of reports.",
            hint="Publish below reports.uri, which the worker passes as --uri.",
        )
    texts = {}
    for file in files:
        loaded = file.name in wanted
        content = checked_file(folder / file.name, size=file.bytes, sha256=file.sha256, keep=loaded)
        if loaded:
            texts[file.name] = _decoded(content, file.name)
    for name in wanted:
        if name not in texts:
            raise ResultRejectedError(f"The manifest names no {name}.")
    return texts


def checked_file(path: Path, *, size: int, sha256: str, keep: bool) -> bytes:
    """What the file holds if it is to be kept, else nothing; of too long a file no more is read
    than shows that it is."""
    if size > FILE_BYTES_MAX:
        raise ResultRejectedError(f"{path.name} is above {FILE_BYTES_MAX} bytes.")
    digest, length, kept = hashlib.sha256(), 0, []
    try:
        with path.open("rb") as file:
            while length <= size and (chunk := file.read(CHUNK_BYTES)):
                digest.update(chunk)
                length += len(chunk)
                if keep:
                    kept.append(chunk)
    except OSError as error:
        raise ResultRejectedError(
            f"{path.name} cannot be read: {error.strerror}.",
            hint="Job and control plane must see the same folder under reports.uri.",
        ) from error
    if length != size or digest.hexdigest() != sha256:
        raise ResultRejectedError(
            f"{path.name} is not the file of the manifest: size or SHA-256 differ.",
            hint="Run the report again; files must not be edited after the job.",
        )
    return b"".join(kept)


def _decoded(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ResultRejectedError(f"{name} is not UTF-8: {error.reason}.") from None
