"""Act *bill*: Spark turns the committed log into the bill, and it equals the log byte for byte.

The bill is a draft invoice in four formats: six checks are green, the lines add up, and what was
published is what was signed.
"""

import json
from pathlib import Path

from tests.support.stories.stage import Figures, Stage


def play_bill(stage: Stage) -> tuple[Figures, str]:
    """Run the usage report, read it back through the CLI, compare log, bill and invoice."""
    run = json.loads(stage.platform.cli("report", "run", "usage", "--wait", "-o", "json").stdout)
    totals = run["result"]["totals"]
    in_log, billed = int(totals["bytes_in_log"]), int(totals["bytes_billed"])
    assert in_log == billed, f"{in_log} bytes in the log, {billed} billed"

    shown = json.loads(stage.platform.cli("usage", "--by", "topic", "-o", "json").stdout)
    ingress = {
        row["group"]: int(row["quantity"])
        for row in shown["items"]
        if row["meter"] == "ingress_bytes"
    }
    assert sum(ingress.values()) == billed, (ingress, billed)
    for topic in stage.topics:
        assert any(name.endswith(topic) for name in ingress), f"{topic} is not on the bill"
    invoice = read_invoice(stage, run["id"])
    folder = Path(run["result"]["path"])
    verified = json.loads(stage.platform.cli("report", "verify", str(folder), "-o", "json").stdout)[
        "items"
    ]
    assert all(check["state"] == "OK" for check in verified), verified
    stage.reports.extend(sorted(folder.glob("*.html")))
    figures: Figures = {
        "bytes_in_log": in_log,
        "bytes_billed": billed,
        "usage_rows": int(totals["rows"]),
        "amount_exact": str(totals["amount_exact"]),
        "currency": str(totals["currency"]),
        **invoice,
    }
    return figures, (
        f"{billed:,} bytes in the log = billed, {figures['amount_exact']} EUR; invoice "
        f"{figures['invoice_total']} {figures['invoice_currency']} in "
        f"{figures['invoice_lines']} lines, {figures['reconciliation']}"
    )


def read_invoice(stage: Stage, run_id: str) -> Figures:
    """The invoice of this run, its lines added up and its checks looked at."""
    listed = json.loads(stage.platform.cli("invoice", "list", "-o", "json").stdout)["items"]
    drafts = [one for one in listed if one["run_id"] == run_id]
    assert drafts, "the run drew no invoice"
    newest = max(drafts, key=lambda one: str(one["period"]))
    found = json.loads(stage.platform.cli("invoice", "get", newest["id"], "-o", "json").stdout)
    cents = [int(line["amount"].replace(".", "")) for line in found["lines"]]
    assert sum(cents) == int(found["total"].replace(".", "")), found
    red = [check for check in found["reconciliation"] if check["state"] != "GREEN"]
    assert not red, red
    assert found["blocked"] is False
    skus = {line["sku"] for line in found["lines"]}
    assert {"ingress_bytes", "partition_seconds"} <= skus, skus
    return {
        "invoice_total": str(found["total"]),
        "invoice_currency": str(found["currency"]),
        "invoice_lines": len(found["lines"]),
        "invoice_per_month": str(found.get("amount_per_month", "not enough data")),
        "reconciliation": "green",
    }
