"""Makes the class archive that quickens the start of Spark: `python -m reports warm`.

Owns the one job that touches what a run touches, so that its classes are in the archive. The
archive appears by a rename; without it everything works, slower. Refuses to run where an archive of
this Spark and this JVM exists.
"""

import os
import subprocess
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from reports.errors import ReportError
from reports.session import archive_path, open_session

SECONDS_MAX = 120


def warm() -> Path:
    """The archive's path; made if it is not there yet."""
    target = archive_path()
    if target.is_file():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        made = Path(folder) / target.name
        session = open_session("local[1]", archive=made)
        _touch(session, Path(folder) / "rows")
        _end(session)
        if not made.is_file():
            raise ReportError(
                "ARCHIVE_NOT_MADE",
                "This JVM wrote no class archive.",
                "Reports work without it; a JVM of version 13 or newer can make one.",
            )
        os.rename(made, target)
    return target


def _touch(session: SparkSession, folder: Path) -> None:
    rows = session.range(1000).select((F.col("id") % 7).alias("key"), F.col("id").alias("value"))
    rows.repartition(1).sortWithinPartitions("key").write.parquet(folder.as_uri())
    read = session.read.parquet(folder.as_uri())
    sums = read.groupBy("key").agg(F.sum(F.col("value").cast("decimal(19,0)")).alias("value"))
    sums.join(F.broadcast(read), "key").orderBy("key").collect()


def _end(session: SparkSession) -> None:
    """The JVM writes the archive while it exits, so its end is waited for."""
    gateway = session.sparkContext._gateway
    assert gateway is not None
    process: subprocess.Popen[bytes] = gateway.proc
    session.stop()
    gateway.shutdown()
    if process.stdin is not None:
        process.stdin.close()
    process.wait(timeout=SECONDS_MAX)
