"""Makes the class archive that quickens the start of Spark: `python -m reports warm`.

Owns the one job that touches what a run touches (a Python data source, Arrow workers, Parquet, the
plans of the bill), so that those classes are in the archive. The archive appears by a rename;
without it everything works, slower. Does nothing where an archive of this Spark and JVM exists.
"""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from reports.billing import rating, usage
from reports.errors import ReportError
from reports.files import write_parquet
from reports.input.export import export_of
from reports.input.usage_records import ARROW, decoded
from reports.output import names
from reports.session import archive_path, open_session
from reports.source.columns import BATCHES

SECONDS_MAX = 300
_EMPTY: dict[str, object] = {
    name: [] for name in ("organizations", "projects", "streams", "topics", "api_keys")
}
_PRICE = {"meter": "ingress_bytes", "unit": "GiB", "unit_quantity": 1 << 30, "unit_price": "1"}
_BOOK = {"version": "warm", "currency": "EUR", "prices": [_PRICE]}


def warm() -> Path:
    """The archive's path; made if it is not there yet."""
    target = archive_path()
    if target.is_file():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        made = Path(folder) / target.name
        session = open_session("local[1]", archive=made)
        _touch(session, Path(folder))
        _end(session)
        if not made.is_file():
            raise ReportError(
                "ARCHIVE_NOT_MADE",
                "This JVM wrote no class archive.",
                "Reports work without it; a JVM of version 13 or newer can make one.",
            )
        os.rename(made, target)
    return target


class EmptyReader(DataSourceReader):
    """One task, no rows."""

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """A RecordBatch without rows."""
        schema = pa.schema([("offset", pa.int64()), ("value", pa.binary())])
        yield pa.RecordBatch.from_pylist([], schema=schema)


class EmptySource(DataSource):
    """Records of a topic that holds none."""

    @classmethod
    def name(cls) -> str:
        """Never registered outside of `warm`."""
        return "headrace_empty"

    def schema(self) -> str:
        """What decoding `_usage` needs."""
        return "offset bigint, value binary"

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of nothing."""
        return EmptyReader()


def _touch(session: SparkSession, folder: Path) -> None:
    session.dataSource.register(EmptySource)
    records = session.read.format(EmptySource.name()).load()
    write_parquet(decoded(records).repartition(1).sortWithinPartitions("offset"), folder, "usage")
    rows = session.read.parquet((folder / "usage-00000.parquet").as_uri())
    closes = rows.union(session.createDataFrame(ARROW.empty_table())).select("offset", "close.*")
    _bill(session, closes, folder)


def _bill(session: SparkSession, closes: DataFrame, folder: Path) -> None:
    export = export_of({**_EMPTY, "price_book": _BOOK})
    unique = usage.unique_closes(closes).cache()
    rated = rating.rate(usage.hourly(unique), export.books, ["ingress_bytes", "records"])
    write_parquet(names.named(rated, export), folder, "rows")
    batches = session.createDataFrame([], BATCHES).drop("topic")
    renamed = batches.withColumnRenamed("topic_number", "topic")
    missing = usage.gaps(unique, from_beginning=True)
    usage.reconcile(unique, missing, renamed).collect()


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
