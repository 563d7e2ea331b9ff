"""Publishes a retention report: retention.parquet, .csv, .json, .html and manifest.json, whole or
not at all.

Owns the same order and the same promise as the usage report (publish.py): the other formats are
made by reading the Parquet file; the same inputs and the same code give the same bytes. Refuses
to publish rows that do not add up to what Spark summed from the trims.
"""

import json
import os
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame

from headrace.evidence import MANIFEST, canonical_json
from headrace.version import VERSION
from reports import formats
from reports.errors import PublishError
from reports.files import appear, digest, pending_folder, write_parquet
from reports.output.evidence import sign_manifest
from reports.output.publish import Report, parquet_rows
from reports.output.retention_page import retention_page
from reports.retention.export import instant_text
from reports.retention.freeze import KIND, FrozenRetention
from reports.retention.rows import COLUMNS
from reports.retention.rules import RULES
from reports.retention.summary import Document, Gathered, topics_of, totals_of, violation_counts

SCHEMA = 1
SUMMED = ("live_bytes", "deleted_bytes", "deleted_records")


@dataclass(slots=True)
class Sums:
    """The published rows, added up while they are written: a second, independent addition."""

    rows: int = 0
    live_bytes: int = 0
    deleted_bytes: int = 0
    deleted_records: int = 0

    def add(self, row: formats.Row) -> None:
        """Count one published row."""
        self.rows += 1
        for name in SUMMED:
            value = row[name]
            assert isinstance(value, int)
            setattr(self, name, getattr(self, name) + value)

    def agree(self, totals: Document) -> None:
        """What Spark summed before there were rows must be what was published. Tolerance 0."""
        for name in SUMMED:
            if str(getattr(self, name)) != totals[name]:
                raise PublishError(
                    "TOTALS_DISAGREE",
                    f"The rows add up to {getattr(self, name)} {name}, the trims and batches to "
                    f"{totals[name]}.",
                    "Nothing was published; keep the inputs and report this fault of the report.",
                )


def publish_retention(
    root: Path, rows: DataFrame, frozen: FrozenRetention, gathered: Gathered
) -> Report:
    """Write `rows` (one Spark partition) to `root`/retention/<sha256 of the inputs>."""
    parent = root / KIND
    target = parent / frozen.sha256
    topics = topics_of(gathered, frozen.export)
    with pending_folder(parent) as folder:
        written = write_parquet(rows, folder, KIND)
        if len(written) != 1:
            raise PublishError(
                "ROWS_NOT_ONE_FILE",
                f"Spark wrote {len(written)} files of rows.",
                "This is a fault of the report: keep the inputs and report it.",
            )
        parquet = folder / f"{KIND}.parquet"
        os.rename(written[0], parquet)
        sums = _write_rows(folder, parquet, frozen, gathered, topics)
        totals = totals_of(gathered, sums.rows)
        sums.agree(totals)
        page = retention_page(topics, totals, frozen, gathered)
        (folder / f"{KIND}.html").write_text(page, encoding="utf-8")
        manifest = sign_manifest(root, KIND, _manifest(folder, target, sums, frozen, gathered))
        (folder / MANIFEST).write_bytes(canonical_json(manifest))
        appear(folder, target)
    return Report(target, manifest)


def complete(frozen: FrozenRetention, gathered: Gathered) -> bool:
    """Whether every trim since the beginning of `_retention` is reported, once."""
    return not gathered.gaps and gathered.conflicts == 0 and frozen.offsets.complete


def _write_rows(
    folder: Path,
    parquet: Path,
    frozen: FrozenRetention,
    gathered: Gathered,
    topics: list[Document],
) -> Sums:
    """retention.csv and retention.json, one pass over the Parquet file; the sums of the pass."""
    sums = Sums()
    with ExitStack() as stack:
        table = stack.enter_context(
            (folder / f"{KIND}.csv").open("w", encoding="utf-8", newline="")
        )
        document = stack.enter_context((folder / f"{KIND}.json").open("w", encoding="utf-8"))
        lines = formats.CsvWriter(table, COLUMNS)
        document.write('{"rows":[')
        objects = formats.JsonRows(document, COLUMNS)
        for row in parquet_rows(parquet):
            lines.write(row)
            objects.write(row)
            sums.add(row)
        rest = {
            "schema": SCHEMA,
            "kind": KIND,
            "input_sha256": frozen.sha256,
            "as_of": instant_text(frozen.export.as_of_us),
            "complete": complete(frozen, gathered),
            "offsets_complete": frozen.offsets.complete,
            "conflicts": str(gathered.conflicts),
            "gaps": [
                {name: str(value) for name, value in row.asDict().items()} for row in gathered.gaps
            ],
            "rules": dict(RULES),
            "totals": totals_of(gathered, sums.rows),
            "violations": violation_counts(gathered),
            "topics": topics,
        }
        document.write("\n],")
        document.write(json.dumps(rest, sort_keys=True, ensure_ascii=False, indent=1)[1:])
        document.write("\n")
    return sums


def _manifest(
    folder: Path, target: Path, sums: Sums, frozen: FrozenRetention, gathered: Gathered
) -> Document:
    return {
        "schema": SCHEMA,
        "kind": KIND,
        "code_version": VERSION,
        "input_sha256": frozen.sha256,
        "as_of": instant_text(frozen.export.as_of_us),
        "path": str(target),
        "complete": complete(frozen, gathered),
        "gaps": len(gathered.gaps),
        "violations": violation_counts(gathered),
        "files": [digest(path).entry() for path in sorted(folder.iterdir())],
        "totals": totals_of(gathered, sums.rows),
        "sums": [
            {
                "file": f"{KIND}.csv",
                "rows": str(sums.rows),
                "columns": {name: str(getattr(sums, name)) for name in SUMMED},
            }
        ],
    }
