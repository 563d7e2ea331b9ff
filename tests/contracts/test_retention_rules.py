"""The rules of retention have one text: the report's own, which the console repeats."""

import re
from pathlib import Path

from reports.retention.rules import RULES

SOURCE = Path(__file__).resolve().parents[2] / "api/console/src/features/retention/report.ts"


def test_the_console_says_of_a_rule_what_the_report_says() -> None:
    block = SOURCE.read_text().partition("export const RULES")[2].partition("\n};")[0]
    said = {
        name: "".join(re.findall(r'"([^"]*)"', text))
        for name, text in re.findall(
            r'^  ([A-Z_]+):((?:\s*"[^"]*"(?: \+)?)+),', block, re.MULTILINE
        )
    }
    assert said == dict(RULES)
