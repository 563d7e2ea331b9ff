"""Files of invoices: four formats agree, the same inputs give the same bytes, all is signed."""

import csv
import json
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from headrace.evidence import verify
from reports.billing.invoice import COLUMNS, PRICING
from reports.errors import PublishError
from reports.formats import text_of, unescaped
from reports.input.freeze import Frozen
from reports.output.evidence import KEY
from reports.output.publish import Report
from reports.run import report_of
from tests.reports.building import (
    HOUR_US,
    TEN_US,
    Close,
    Counter,
    batches_of,
    export,
    frozen,
    minutes,
)
from tests.reports.cases import partitioned
from tests.reports.pages import Page
from tests.support.shape import strange
from tests.support.stories.invoice_story import invoice_of

GIB = 1 << 30
STEM = "invoice-org_acme-2026-11"
MARKUP = "<script>alert(1)</script>"


def archive(spark: SparkSession, root: Path, order: random.Random | None = None) -> Frozen:
    """Two and a half hours of all meters: 150 windows of a GiB, and a node that was restarted.

    order: in which `_usage` and the log hold them; one after the other unless given.
    """
    closes = minutes([(GIB, 100 + index) for index in range(150)])
    counters = [
        Counter(1, 5000, 5000),
        Counter(2, 7, 7, meter="requests"),
        Counter(1, 900, 900, meter="stored_byte_seconds", principal_id="", incarnation=2),
    ]
    names = export(topic=MARKUP, as_of="2026-11-27T12:30:00.250Z", minimum="5.00")
    rows = [*closes, closes[3]]
    if order is not None:
        rows, counters = order.sample(rows, len(rows)), order.sample(counters, len(counters))
    return frozen(spark, root, rows, batches_of(closes), names, counters)


@pytest.fixture(scope="module")
def report(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Report:
    """The report of that archive."""
    root = tmp_path_factory.mktemp("reports")
    return report_of(spark, root, archive(spark, root))


def document_of(report: Report) -> dict[str, list[dict[str, object]]]:
    """invoice.json."""
    found: dict[str, list[dict[str, object]]] = json.loads(
        (report.folder / f"{STEM}.json").read_bytes()
    )
    return found


def entry_of(report: Report) -> dict[str, object]:
    """What the manifest says of the only invoice."""
    entries = report.manifest["invoices"]
    assert isinstance(entries, list)
    (entry,) = entries
    assert isinstance(entry, dict)
    return entry


def test_the_four_formats_of_an_invoice_agree_to_the_last_digit(report: Report) -> None:
    parquet = pq.read_table(report.folder / f"{STEM}.parquet").to_pylist()
    with (report.folder / f"{STEM}.csv").open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    items = document_of(report)["lines"]
    assert tuple(lines[0]) == COLUMNS
    assert len(parquet) == len(lines) == len(items) == 5
    for row, line, item in zip(parquet, lines, items, strict=True):
        texts = {name: text_of(name, row[name]) for name in COLUMNS}
        assert {name: unescaped(cell) for name, cell in line.items()} == texts
        assert {name: item[name] for name in COLUMNS} == texts
    *shown, total = Page(report.folder / f"{STEM}.html").tables["Line items"]
    for cells, line in zip(shown, lines, strict=True):
        number, description, sku, quantity, _, exact, amount = cells
        wanted = ("line", "description", "sku", "amount_exact", "amount")
        assert [number, description, sku, exact, amount] == [line[name] for name in wanted]
        assert quantity.endswith(f"{int(line['quantity']):,} {line['unit']}")
    assert Decimal(total[-1]) == sum(Decimal(line["amount"]) for line in lines)


def test_the_invoice_of_the_browser_tests_has_the_shape_of_this_one(report: Report) -> None:
    row = {
        "organization": "acme", "project": "default", "stream": "default", "topic": "orders",
        "topic_id": "tp_1", "meter": "ingress_bytes", "unit": "B", "quantity": str(GIB),
        "unit_price": "0.1", "amount": "0.1", "window_start": "2026-11-01T00:00:00Z",
        "window_end": "2026-11-01T01:00:00Z",
    }  # fmt: skip
    month = datetime(2026, 11, 1, tzinfo=UTC)
    later = {**row, "window_start": "2026-11-01T01:00:00Z", "window_end": "2026-11-01T02:00:00Z"}
    told = invoice_of("org_acme", [row, later], month, month + timedelta(days=2))
    assert strange(told, document_of(report), free=[".reconciliation[].figures"]) == set()


def test_the_page_runs_nothing_and_fetches_nothing(report: Report) -> None:
    page = Page(report.folder / f"{STEM}.html")
    assert "script" not in page.tags
    assert page.fetched == []
    assert "url(" not in page.text


def test_an_invoice_says_which_hours_a_price_book_prices(report: Report) -> None:
    document = json.loads((report.folder / f"{STEM}.json").read_bytes())
    assert document["pricing"] == PRICING
    assert "in effect when the hour began" in PRICING
    (book,) = document["price_books"]
    assert (book["version"], book["from"]) == ("demo-1", document["period_start"])
    assert document["price_book_version"] == "demo-1"
    assert PRICING in (report.folder / f"{STEM}.html").read_text()


def test_every_meter_has_its_line_and_the_total_is_what_they_show(report: Report) -> None:
    found = [(i["sku"], i["quantity"], i["amount"]) for i in document_of(report)["lines"]]
    assert found == [
        ("ingress_bytes", str(150 * GIB), "7.50"),
        ("partition_seconds", str(2 * 9000), "0.01"),
        ("egress_bytes", "5000", "0.00"),
        ("requests", "7", "0.00"),
        ("stored_byte_seconds", "900", "0.00"),
    ]
    entry = entry_of(report)
    assert (entry["total"], entry["blocked"]) == ("7.51", False)


def test_all_six_checks_are_green_and_the_lost_life_is_told(report: Report) -> None:
    checks = document_of(report)["reconciliation"]
    assert [(one["name"], one["state"]) for one in checks] == [
        (name, "GREEN")
        for name in (
            *("counters", "quantities", "log", "partition_seconds", "unattributed", "lines"),
        )
    ]
    assert checks == report.manifest["checks"]
    assert "nd_one life 1 shard 0" in str(checks[0]["detail"])


def test_a_line_leads_back_to_hours_partitions_and_offsets(report: Report) -> None:
    line = document_of(report)["lines"][0]
    hours, partitions = line["hours"], line["partitions"]
    assert isinstance(hours, list)
    assert isinstance(partitions, list)
    assert sum(int(one["quantity"]) for one in hours) == 150 * GIB
    assert [(one["first_offset"], one["end_offset"]) for one in partitions] == [
        ("0", str(sum(100 + n for n in range(60)))),
        (str(sum(100 + n for n in range(60))), str(sum(100 + n for n in range(120)))),
        (str(sum(100 + n for n in range(120))), str(sum(100 + n for n in range(150)))),
    ]
    assert [one["bytes"] for one in partitions] == [one["bytes_in_log"] for one in partitions]


def test_the_parquet_file_has_the_columns_of_focus(report: Report) -> None:
    row = pq.read_table(report.folder / f"{STEM}.parquet").to_pylist()[0]
    assert (row["BilledCost"], row["ListUnitPrice"]) == (Decimal("7.50"), Decimal("0.05"))
    assert (row["ConsumedQuantity"], row["ConsumedUnit"]) == (150 * GIB, "B")
    assert (row["PricingQuantity"], row["PricingUnit"]) == (150, "GiB")
    assert (row["ChargeCategory"], row["ChargeClass"]) == ("Usage", None)
    assert (row["SkuId"], row["ResourceId"]) == ("ingress_bytes", "tp_flights")
    assert row["SubAccountId"] == "org_acme"
    assert row["BillingPeriodStart"] == row["ChargePeriodStart"] == row["period_start"]


def test_the_run_is_signed_and_its_sums_hold(report: Report) -> None:
    checks = {check.name: check for check in verify(report.folder)}
    assert [check.ok for check in checks.values()] == [True] * 5
    assert checks["totals"].detail.startswith("2 files")


@pytest.mark.check
def test_records_in_any_order_give_the_same_bytes_of_the_bill_and_of_every_invoice(
    report: Report, spark: SparkSession, tmp_path: Path
) -> None:
    with partitioned(spark, 5):
        other = report_of(spark, tmp_path, archive(spark, tmp_path, random.Random(11)))
    for name in ("totals", "checks", "invoices", "sums", "partitions", "complete"):
        assert other.manifest[name] == report.manifest[name], name
    names = sorted(path.name for path in report.folder.glob("[iu]*"))
    assert len(names) == 8
    for name in names:
        # Some of them name the archive, whose records lie in another order.
        content = (other.folder / name).read_bytes()
        content = content.replace(other.folder.name.encode(), report.folder.name.encode())
        assert content == (report.folder / name).read_bytes(), name


@pytest.mark.check
def test_a_missing_close_blocks_the_invoice_and_a_run_that_fails_leaves_the_last_one(
    spark: SparkSession, tmp_path: Path
) -> None:
    closes = minutes([(10, 1), (20, 2), (30, 3)])
    names = export(as_of="2026-11-27T10:30:00Z")
    torn = frozen(spark, tmp_path, [closes[0], closes[2]], batches_of(closes), names)
    report = report_of(spark, tmp_path, torn)
    entry = entry_of(report)
    assert entry["blocked"] is True
    states = {one["name"]: one["state"] for one in document_of(report)["reconciliation"]}
    assert (states["counters"], states["log"]) == ("RED", "RED")
    assert "cannot be issued" in (report.folder / f"{STEM}.html").read_text()

    before = sorted(path.name for path in (tmp_path / "usage").iterdir())
    (tmp_path / "evidence" / KEY).write_bytes(b"not a key")
    late = replace(closes[0], start_us=TEN_US + HOUR_US, end_us=TEN_US + HOUR_US + 5)
    with pytest.raises(PublishError, match="SIGNING_KEY_INVALID"):
        report_of(spark, tmp_path, frozen(spark, tmp_path, [Close(1, late.sums)], names=names))
    assert sorted(path.name for path in (tmp_path / "usage").iterdir()) == before
