"""Files that appear whole or not at all, and what proves that they are the ones that were meant.

Owns the order of durability: every file synced, then the pending folder, then the rename, then the
parent. A killed run leaves a folder whose name begins with `.pending-`, which no reader opens and a
later run removes. Refuses object stores: a `uri` is a folder that driver and workers share.
"""

import hashlib
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from reports.errors import ArgumentError, PublishError

PENDING = ".pending-"
PENDING_SECONDS_MAX = 24 * 3600
ROWS_PER_GROUP = 131_072


@dataclass(frozen=True, slots=True)
class Published:
    """One file as a manifest lists it; size in bytes, SHA-256 in hexadecimal."""

    name: str
    size_bytes: int
    sha256: str

    def entry(self) -> dict[str, object]:
        """The line of the manifest."""
        return {"name": self.name, "bytes": self.size_bytes, "sha256": self.sha256}


def root_of(uri: str) -> Path:
    """The folder of a `reports.uri`: a path or file:// URL. Made if it is not there."""
    parts = urlsplit(uri)
    if not uri or parts.scheme not in ("", "file") or parts.netloc not in ("", "localhost"):
        raise ArgumentError(
            "URI_UNSUPPORTED",
            f"Reports cannot be published to {uri!r}.",
            "Give a folder, as a path or a file:// URL; for a cluster, one that all hosts mount.",
        )
    root = Path(unquote(parts.path)).absolute()
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as failure:
        raise PublishError(
            "URI_NOT_WRITABLE", f"{root} cannot be made: {failure.strerror}.", "Check its owner."
        ) from failure
    return root


@contextmanager
def pending_folder(parent: Path) -> Iterator[Path]:
    """A new folder beside the final ones; removed on failure, and gone after `settle`."""
    parent.mkdir(parents=True, exist_ok=True)
    sweep(parent)
    folder = Path(mkdtemp(prefix=PENDING, dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def settle(folder: Path, target: Path) -> None:
    """Make `folder` appear as `target`, durable.

    A target that exists already is kept: it has the same content.
    """
    for path in sorted(folder.iterdir()):
        sync(path)
    sync(folder)
    os.chmod(folder, 0o750)
    try:
        os.rename(folder, target)
    except OSError as failure:
        if not target.is_dir():
            raise PublishError(
                "RENAME_FAILED", f"{target} cannot appear: {failure.strerror}.", "Check the disk."
            ) from failure
    sync(target.parent)


def appear(folder: Path, target: Path) -> None:
    """Like `settle`; a target with other bytes was made by other code and gives way."""
    if not target.is_dir() or contents(target) == contents(folder):
        settle(folder, target)
        return
    old = Path(mkdtemp(prefix=PENDING, dir=target.parent))
    os.rename(target, old)
    settle(folder, target)
    shutil.rmtree(old)


def contents(folder: Path) -> list[Published]:
    """Every file of a folder, by name."""
    return [digest(path) for path in sorted(folder.iterdir())]


def sweep(parent: Path) -> None:
    """Remove what killed runs left behind, once no run can still be writing it."""
    for path in parent.glob(f"{PENDING}*"):
        # Of two runs at once one may have ended, and its folder gone, since it was listed.
        with suppress(FileNotFoundError):
            if path.stat().st_mtime < time.time() - PENDING_SECONDS_MAX:
                shutil.rmtree(path, ignore_errors=True)


def write_parquet(frame: DataFrame, folder: Path, name: str) -> list[Path]:
    """Write one file per Spark partition as `name-00000.parquet`, ..; Spark's names are random.

    Its footers are too: they list encodings in an order that differs from one JVM to the next. So
    every file is written again, in row groups of ROWS_PER_GROUP, by a writer that has one order.
    """
    staging = folder / f"{name}.staging"
    frame.write.parquet(staging.as_uri())
    parts = sorted(staging.glob("part-*.parquet"))
    targets = [folder / f"{name}-{index:05d}.parquet" for index in range(len(parts))]
    for part, target in zip(parts, targets, strict=True):
        with pq.ParquetFile(part) as source:
            schema = source.schema_arrow.remove_metadata()
            with pq.ParquetWriter(target, schema, compression="zstd", store_schema=False) as out:
                for group in _groups(source, schema):
                    out.write_table(group, row_group_size=ROWS_PER_GROUP)
    shutil.rmtree(staging)
    return targets


def _groups(source: pq.ParquetFile, schema: pa.Schema) -> Iterator[pa.Table]:
    """The rows in groups of one size, each in one piece, however the file was cut."""
    held = schema.empty_table()
    for batch in source.iter_batches(ROWS_PER_GROUP):
        held = pa.concat_tables([held, pa.Table.from_batches([batch], schema)])
        while held.num_rows >= ROWS_PER_GROUP:
            yield held.slice(0, ROWS_PER_GROUP).combine_chunks()
            held = held.slice(ROWS_PER_GROUP)
    if held.num_rows:
        yield held.combine_chunks()


def digest(path: Path) -> Published:
    """Name, size and SHA-256 of a file."""
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256")
        return Published(path.name, file.tell(), found.hexdigest())


def sync(path: Path) -> None:
    """Make a file, or the names in a folder, durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
