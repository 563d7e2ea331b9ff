"""Report runs of a real platform whose job is scripted: real worker, real token, real files.

Owns the files of a result and the pipe by which a job is told how to end. Refuses to write rows
into the database: everything comes in through the run's own protocol.
"""

import csv
import hashlib
import io
import json
import os
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path

from api.retention.loader import COLUMNS as RETENTION_COLUMNS
from api.retention.loader import SUMMED
from api.usage.loader import COLUMNS
from tests.support.processes.browser import ROOT, Console

Line = Mapping[str, str]
JOBS = Path(__file__).parent / "jobs"


class ScriptedReports:
    """The jobs of one console's platform. Make it before the platform starts."""

    def __init__(self, console: Console) -> None:
        self._folder = console.platform.folder
        self._folder.mkdir(parents=True, exist_ok=True)
        self._pipe = self._folder / "orders"
        os.mkfifo(self._pipe)
        self._root = console.platform.data / "reports"
        # `-m` would find the real package in the working folder before ours.
        console.platform.environment.update(
            PYTHONSAFEPATH="1",
            PYTHONPATH=os.pathsep.join((str(JOBS), str(ROOT))),
            SCRIPTED_ORDERS=str(self._pipe),
        )

    def fail(self, *, code: str, message: str, hint: str) -> None:
        """The job that waits now fails with these words."""
        self._order({"failure": {"code": code, "message": message, "hint": hint}})

    def publish_usage(
        self,
        rows: Sequence[Line],
        page: str = "<h1>Usage</h1>",
        invoices: Sequence[Mapping[str, object]] = (),
        said: Mapping[str, object] | None = None,
    ) -> None:
        """The job that waits now publishes these rows, this page, and these drafts; `said`: members
        of the manifest that are otherwise."""
        files = {"usage.csv": csv_of(COLUMNS, rows), "usage.html": page.encode()}
        for invoice in invoices:
            files[f"{invoice['name']}.json"] = json.dumps(invoice).encode()
            files[f"{invoice['name']}.html"] = page.encode()
        sums = {
            meter: sum(int(row["quantity"]) for row in rows if row["meter"] == meter)
            for meter in ("ingress_bytes", "records")
        }
        totals = {
            "bytes_in_log": str(sums["ingress_bytes"]),
            "bytes_billed": str(sums["ingress_bytes"]),
            "records": str(sums["records"]),
            "rows": str(len(rows)),
            "currency": "EUR",
            "amount_exact": format(sum(Decimal(row["amount"]) for row in rows), "f"),
        }
        entries = [
            {
                name: invoice[name]
                for name in ("organization_id", "period", "name", "blocked", "total")
            }
            for invoice in invoices
        ]
        checks = invoices[0]["reconciliation"] if invoices else []
        manifest = self._written("usage", files, totals)
        whole = {**manifest, "invoices": entries, "checks": checks, **(said or {})}
        self._order({"manifest": whole})

    def publish_retention(
        self, topics: Sequence[Mapping[str, object]], rows: Sequence[Line], as_of: str
    ) -> None:
        """The job that waits now publishes these entries of topics and these lines."""
        files = {
            "retention.csv": csv_of(RETENTION_COLUMNS, rows),
            "retention.json": json.dumps({"topics": topics}).encode(),
        }
        totals = {"rows": str(len(rows))} | {
            name: str(sum(int(row[name]) for row in rows)) for name in SUMMED
        }
        manifest = self._written("retention", files, totals)
        self._order({"manifest": {**manifest, "as_of": as_of}})

    def _written(
        self, kind: str, files: Mapping[str, bytes], totals: Mapping[str, str]
    ) -> dict[str, object]:
        """Puts the files where a job does; their manifest."""
        digest = hashlib.sha256(b"".join(files.values())).hexdigest()
        folder = self._root / kind / digest
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (folder / name).write_bytes(content)
        return {
            "kind": kind,
            "schema": 1,
            "input_sha256": digest,
            "path": f"{kind}/{digest}",
            "complete": True,
            "partitions": {"EXACT": 2},
            "files": [
                {
                    "name": name,
                    "bytes": str(len(content)),
                    "sha256": hashlib.sha256(content).hexdigest(),
                }
                for name, content in files.items()
            ],
            "totals": dict(totals),
        }

    def _order(self, orders: Mapping[str, object]) -> None:
        # Opening waits until a job reads.
        self._pipe.write_text(json.dumps(orders) + "\n")


def csv_of(columns: Sequence[str], rows: Sequence[Line]) -> bytes:
    """RFC 4180, as a job writes it."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns, lineterminator="\r\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()
