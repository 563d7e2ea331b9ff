"""Spark: records a second out of the log, and what a bill of a million records takes.

    source_rows_per_s    records of a topic through the `headrace` source, all columns, thrown away
    parquet_rows_per_s   the same, written as Parquet
    empty_run_s          `python -m reports usage` over an archive that holds nothing
    usage_1m_s           the same over a million records of `_usage` and as many batches
    usage_5m_s           over five million
    peak_mib             the largest memory of that last process and all it started

The last four are whole processes, start of the JVM included; archives are made here, by Spark. One
round: seconds are long enough to be told apart. Refuses to run beside the other benchmarks.
"""

import shutil
import subprocess
import sys
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from headrace import Client
from reports.files import pending_folder, write_parquet
from reports.input.export import export_of
from reports.input.freeze import archive
from reports.input.usage_records import ARROW, ddl
from reports.session import open_session
from reports.source.data_source import HeadraceSource
from tests.performance.machine import FOLDER, ROOT, Figures
from tests.support.processes.platform import Platform

TOPIC = "bench-100"
RECORDS = 1_000_000
PARTITIONS = 100
SIZES = (("usage_1m_s", 1_000_000), ("usage_5m_s", 5_000_000))
# 2026-11-01T00:00:00Z
START_US = 1_793_491_200_000_000
MINUTE_US = 60_000_000
POLL_SECONDS = 0.2


def bench_reports(platform: Platform, client: Client) -> Figures:
    """Every figure above."""
    root = FOLDER / "reports"
    shutil.rmtree(root, ignore_errors=True)
    value = b"x" * 100
    client.topic(TOPIC).send_many([value] * RECORDS)
    spark = open_session("local[*]")
    try:
        figures = _reading(spark, platform, root)
        archives = {
            name: _archive(spark, root, count) for name, count in (("empty_run_s", 0), *SIZES)
        }
    finally:
        spark.stop()
    for name, sha256 in archives.items():
        figures[name], figures["peak_mib"] = _run(root, sha256)
    return figures


def _reading(spark: SparkSession, platform: Platform, root: Path) -> Figures:
    profile = platform.profile()
    spark.dataSource.register(HeadraceSource)
    options = {"bootstrap": profile.bootstrap, "key": profile.key, "topic": TOPIC}
    records = spark.read.format("headrace").options(**options).load()
    rows = records.count()
    began = time.perf_counter()
    records.write.format("noop").mode("overwrite").save()
    read = time.perf_counter()
    records.write.parquet((root / "records").as_uri())
    written = time.perf_counter()
    return {
        "source_rows_per_s": rows / (read - began),
        "parquet_rows_per_s": rows / (written - read),
    }


def _archive(spark: SparkSession, root: Path, count: int) -> str:
    """Frozen inputs of `count` closes over PARTITIONS partitions, a batch each; their SHA-256."""
    with pending_folder(root / "inputs") as folder:
        write_parquet(_closes(spark, count), folder, "usage")
        write_parquet(_batches(spark, count), folder, "batches")
        return archive(spark, root, folder, export_of(_names())).sha256


def _closes(spark: SparkSession, count: int) -> DataFrame:
    turn = f"(id div {PARTITIONS})"
    values = {
        "topic": "16L",
        "created_revision": "3L",
        "partition": f"cast(id % {PARTITIONS} as int)",
        "sequence": f"{turn} + 1",
        "from_op": f"2 * {turn} + 1",
        "to_op": f"2 * {turn} + 2",
        "window_start_us": f"{START_US}L + {turn} * {MINUTE_US}L",
        "window_end_us": f"{START_US}L + ({turn} + 1) * {MINUTE_US}L",
        **{name: f"'{name}'" for name in ("cluster_id", "topic_id", "topic_name")},
        "organization_id": "'org_1'",
        "project_id": "'prj_1'",
        "sums": "array(named_struct('principal', 16L, 'principal_id', 'key_1', "
        "'ingress_bytes', 1000L, 'records', 10L, 'batches', 1L))",
    }
    close = ", ".join(f"'{name}', {value}" for name, value in values.items())
    nothing = f"cast(null as {ddl(ARROW.field('counter').type)}) as counter"
    ids = spark.range(0, count, 1, 1)
    return ids.selectExpr("id as offset", f"named_struct({close}) as close", nothing)


def _batches(spark: SparkSession, count: int) -> DataFrame:
    turn = f"(id div {PARTITIONS})"
    return spark.range(0, count, 1, 1).selectExpr(
        "16L as topic",
        "3L as created_revision",
        f"cast(id % {PARTITIONS} as int) as partition",
        f"10 * {turn} as base_offset",
        "10L as record_count",
        "1000L as stored_bytes",
        "16L as principal",
        f"{START_US}L + {turn} * {MINUTE_US}L as append_time_us",
        f"2 * {turn} + 1 as op",
        f"1000 * ({turn} + 1) as cumulative_bytes",
    )


def _names() -> dict[str, object]:
    price = {"meter": "ingress_bytes", "unit": "GiB", "unit_quantity": 1 << 30, "unit_price": "1"}
    return {
        "organizations": [{"id": "org_1", "name": "acme"}],
        "projects": [{"id": "prj_1", "organization_id": "org_1", "name": "default"}],
        "streams": [],
        "topics": [],
        "api_keys": [],
        "price_book": {"version": "bench", "currency": "EUR", "prices": [price]},
    }


def _run(root: Path, sha256: str) -> tuple[float, float]:
    """Seconds of a whole run over an archive, and its peak of memory in MiB."""
    arguments = ["usage", "--inputs", sha256, "--uri", str(root), "--master", "local[*]"]
    began, peaks = time.perf_counter(), dict[int, int]()
    with subprocess.Popen(
        [sys.executable, "-m", "reports", *arguments], cwd=ROOT, stdout=subprocess.DEVNULL
    ) as job:
        while job.poll() is None:
            peaks.update(_peaks_kib(job.pid))
            time.sleep(POLL_SECONDS)
    seconds = time.perf_counter() - began
    assert job.returncode == 0, f"the run ended with {job.returncode}"
    return seconds, sum(peaks.values()) / 1024


def _peaks_kib(root: int) -> dict[int, int]:
    """The largest memory so far of a process and of everything below it, by process id."""
    parents: dict[int, int] = {}
    peaks: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/status"):
        try:
            lines = path.read_text().splitlines()
        except OSError:
            continue  # It ended meanwhile.
        fields = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
        parents[int(path.parent.name)] = int(fields["PPid"])
        peaks[int(path.parent.name)] = int(fields.get("VmHWM", "0 kB").split()[0])
    below = {root}
    while True:
        more = {pid for pid, parent in parents.items() if parent in below} | below
        if more == below:
            return {pid: peaks[pid] for pid in below if pid in peaks}
        below = more
