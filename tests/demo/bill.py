"""Act *bill*: Spark turns the committed log into the bill, and it equals the log byte for byte."""

import json
from pathlib import Path

from tests.support.stage import Figures, Stage


def play_bill(stage: Stage) -> tuple[Figures, str]:
    """Run the usage report, read it back through the CLI, compare log and bill."""
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
    stage.reports.extend(sorted(Path(run["result"]["path"]).glob("*.html")))
    figures: Figures = {
        "bytes_in_log": in_log,
        "bytes_billed": billed,
        "usage_rows": int(totals["rows"]),
        "amount_exact": str(totals["amount_exact"]),
        "currency": str(totals["currency"]),
    }
    return figures, f"{billed:,} bytes in the log = billed, {figures['amount_exact']} EUR"
