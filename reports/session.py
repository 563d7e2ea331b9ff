"""One pinned SparkSession per process, and the class archive that makes its start cheap.

Owns every setting that could change a figure (time zone, ANSI arithmetic, Parquet types) or that
makes local runs quick (one JVM with the serial collector, few shuffle partitions). Refuses to
choose the master: that is an argument.

The JVM spends most of its start reading classes. `warm` runs a small job once with
-XX:ArchiveClassesAtExit; later starts map the archive. The JVM itself checks that the archive fits
its version and class path and ignores it otherwise, so a stale archive costs time, never
correctness.
"""

import hashlib
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from reports.errors import ArgumentError, ReportError, SparkError

ROOT = Path(__file__).resolve().parent.parent
LOGGING = ROOT / "reports" / "log4j2.properties"
LOCAL_SHUFFLE_PARTITIONS = 2

# Settings that decide what the figures are. Nothing may override them.
PINNED = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.parquet.writeLegacyFormat": "false",
    "spark.sql.sources.commitProtocolClass": (
        "org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol"
    ),
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "spark.hadoop.parquet.enable.summary-metadata": "false",
    # Archives carry their own SHA-256; .crc companions would only be more files to account for.
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.hadoop.fs.file.impl.disable.cache": "true",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def open_session(master: str, *, archive: Path | None = None) -> SparkSession:
    """The session of this process on `master` (`local[*]`, `spark://..`, `k8s://..`); the time zone
    is always UTC.

    archive: where `warm` writes the class archive when this JVM ends; None uses an existing one if
    there is any.
    """
    if not master:
        raise ArgumentError(
            "MASTER_MISSING", "No Spark master was given.", "Pass --master, for example local[*]."
        )
    local = master.startswith("local[") or master == "local"
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName("headrace-reports")
    for key, value in PINNED.items():
        builder = builder.config(key, value)
    builder = builder.config("spark.executorEnv.PYTHONPATH", _python_path())
    if local:
        for key, value in _local_settings(archive).items():
            builder = builder.config(key, value)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Spark's own modules leave files to the collector; that is not ours to fail on.
        warnings.simplefilter("ignore", ResourceWarning)
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    if session.conf.get("spark.sql.session.timeZone") != "UTC":
        raise ArgumentError(
            "TIME_ZONE_NOT_UTC",
            "This process already has a Spark session with another time zone.",
            "Start the report in its own process.",
        )
    return session


@contextmanager
def opened_session(master: str) -> Iterator[SparkSession]:
    """`open_session` for the length of a run. SPARK_ENDED if the JVM is killed meanwhile."""
    spark = open_session(master)
    try:
        yield spark
    except Exception as failure:
        if isinstance(failure, ReportError) or _answers(spark):
            raise
        raise SparkError(
            "SPARK_ENDED",
            "Spark's JVM ended before the report was computed; nothing was published.",
            "Run it again. If it ends again, see the kernel's log for memory that ran out.",
        ) from failure
    finally:
        # Of a JVM that is gone there is nothing to stop, and what is said above is the reason.
        if _answers(spark):
            spark.stop()


def _answers(spark: SparkSession) -> bool:
    """Whether the JVM is there."""
    try:
        return bool(spark.version)
    except Exception:  # noqa: BLE001 - what is asked of one that is gone fails in many ways
        return False


def archive_path() -> Path:
    """Where the class archive of this Spark and this JVM lies, whether it exists or not.

    The place of the jars is part of the name: the JVM refuses an archive of others.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    place = hashlib.sha256(pyspark.__file__.encode()).hexdigest()[:8]
    return cache / "headrace" / f"spark-{pyspark.__version__}-{_java_version()}-{place}.jsa"


def _local_settings(archive: Path | None) -> dict[str, str]:
    options = [
        # Not on the class path, where Spark would find it: a folder there forbids archives.
        f"-Dlog4j2.configurationFile={LOGGING.as_uri()}",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-Xshare:auto",
        "-Xlog:disable",
        "-Xlog:all=off",
    ]
    if archive is not None:
        options.append(f"-XX:ArchiveClassesAtExit={archive}")
    elif archive_path().is_file():
        options.append(f"-XX:SharedArchiveFile={archive_path()}")
    return {
        # Without these the first network interface is taken, which another host may reach.
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": " ".join(options),
        "spark.sql.shuffle.partitions": str(LOCAL_SHUFFLE_PARTITIONS),
        "spark.default.parallelism": str(LOCAL_SHUFFLE_PARTITIONS),
        "spark.sql.adaptive.enabled": "false",
        "spark.shuffle.compress": "false",
    }


def _python_path() -> str:
    inherited = os.environ.get("PYTHONPATH")
    return os.pathsep.join([str(ROOT), inherited] if inherited else [str(ROOT)])


def _java_version() -> str:
    java = Path(os.environ["JAVA_HOME"]) / "bin" / "java" if "JAVA_HOME" in os.environ else "java"
    try:
        answer = subprocess.run(
            [str(java), "-version"], capture_output=True, text=True, check=True, timeout=30
        )
    except (OSError, subprocess.SubprocessError) as failure:
        raise ArgumentError(
            "JAVA_MISSING",
            f"Spark needs a Java runtime and `{java} -version` did not work.",
            "Install openjdk-17-jre-headless, or set JAVA_HOME.",
        ) from failure
    return answer.stderr.split('"')[1]
