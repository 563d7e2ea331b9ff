"""A report appears whole or not at all, says the same in every format, and the same again."""

import csv
import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from reports.errors import InputError
from reports.formats import escaped, text_of, unescaped
from reports.input.freeze import thawed
from reports.output.names import COLUMNS
from reports.output.publish import Report
from reports.run import report_of
from tests.reports.building import Close, Sum, batches_of, export, frozen, minutes
from tests.reports.cases import partitioned
from tests.reports.pages import Page

FORMULA = "=cmd|' /C calc'!A0"
PRICED = ("ingress_bytes", "node_seconds")
MARKUP = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def report(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Report:
    """Three hours of a topic, with hostile names, a second key and a repeated close."""
    root = tmp_path_factory.mktemp("reports")
    closes = minutes([(1 << 20, 100 + index) for index in range(150)])
    closes.append(Close(1, (Sum(7, 1, "key_gone", 17),), partition=1))
    names = export(organization=FORMULA, topic=MARKUP)
    archive = frozen(spark, root, [*closes, closes[3]], batches_of(closes), names)
    return report_of(spark, root, archive)


def csv_rows(report: Report) -> list[dict[str, str]]:
    """The rows of usage.csv."""
    with (report.folder / "usage.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_folder_holds_the_files_that_its_manifest_lists(report: Report) -> None:
    manifest = json.loads((report.folder / "manifest.json").read_bytes())
    assert manifest == report.manifest
    listed = {entry["name"]: entry for entry in manifest["files"]}
    assert {path.name for path in report.folder.iterdir()} == {*listed, "manifest.json"}
    for name, entry in listed.items():
        content = (report.folder / name).read_bytes()
        assert (len(content), hashlib.sha256(content).hexdigest()) == (
            entry["bytes"],
            entry["sha256"],
        )


def test_the_four_formats_agree_to_the_last_digit(report: Report) -> None:
    parquet = pq.read_table(report.folder / "usage.parquet").to_pylist()
    document = json.loads((report.folder / "usage.json").read_bytes())
    lines = csv_rows(report)
    assert tuple(lines[0]) == COLUMNS
    assert len(parquet) == len(document["rows"]) == len(lines) == 8
    for row, item, line in zip(parquet, document["rows"], lines, strict=True):
        texts = {name: text_of(name, value) for name, value in row.items()}
        assert {name: unescaped(cell) for name, cell in line.items()} == texts
        assert {**item, "estimated": text_of("estimated", item["estimated"])} == texts
    *shown, total = Page(report.folder / "usage.html").tables["Usage by topic and key"]
    keys = {key["id"]: key["name"] for key in document["api_keys"]}
    assert sorted(shown) == sorted(lines_of(lines, keys))
    assert total == ["Total", "", "", "", *figures_of(lines)]


def lines_of(rows: Sequence[dict[str, str]], keys: Mapping[str, str]) -> list[list[str]]:
    """The lines of the page, added up from the rows of usage.csv; keys: their names by id."""
    found: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for row in rows:
        organization, project, stream, topic, principal = (
            unescaped(row[name])
            for name in ("organization", "project", "stream", "topic", "principal")
        )
        place = organization, project, f"{stream}/{topic}", keys.get(principal, principal)
        found.setdefault(place, []).append(row)
    return [[*place, *figures_of(some)] for place, some in found.items()]


def figures_of(rows: Sequence[dict[str, str]]) -> list[str]:
    """Bytes, records and amount, as the page writes them."""
    counts = [
        sum(int(row["quantity"]) for row in rows if row["meter"] == meter)
        for meter in ("ingress_bytes", "records")
    ]
    amount = sum(Decimal(row["amount"]) for row in rows)
    return [*(f"{count:,}" for count in counts), f"{amount:.9f}"]


def test_the_totals_are_the_sums_of_the_rows(report: Report) -> None:
    totals = report.manifest["totals"]
    lines = csv_rows(report)
    billed = [line for line in lines if line["meter"] == "ingress_bytes"]
    assert totals == {
        "bytes_in_log": str(150 * (1 << 20) + 7),
        "bytes_billed": str(sum(int(line["quantity"]) for line in billed)),
        "bytes_open": "0",
        "bytes_before_log": "0",
        "records": str(sum(100 + index for index in range(150)) + 1),
        "rows": "8",
        "amount_exact": str(sum(Decimal(line["amount"]) for line in lines)),
        "amount": "0.01",
        "amount_per_month": "1.757812800",
        "rate_from": min(line["window_start"] for line in lines),
        "rate_until": max(line["window_end"] for line in lines),
        "currency": "EUR",
    }
    assert report.manifest["complete"] is True


def test_the_days_are_the_sums_of_their_hours(report: Report) -> None:
    days = json.loads((report.folder / "usage.json").read_bytes())["days"]
    lines = csv_rows(report)
    assert {day["day"] for day in days} == {line["window_start"][:10] for line in lines}
    for name in ("ingress_bytes", "records"):
        hours = [line for line in lines if line["meter"] == name]
        assert sum(int(day[name]) for day in days) == sum(int(line["quantity"]) for line in hours)
    amount = sum(Decimal(line["amount"]) for line in lines)
    assert sum(Decimal(day["amount"]) for day in days) == amount


def test_names_that_are_formulas_are_escaped_in_csv_only(report: Report) -> None:
    assert {line["organization"] for line in csv_rows(report)} == {f"'{FORMULA}"}
    assert json.loads((report.folder / "usage.json").read_bytes())["rows"][0]["topic"] == MARKUP


@pytest.mark.parametrize("text", ["=1", "+1", "-1", "@a", "\tx", "'quoted", "plain", ""])
def test_escaping_is_undone_exactly(text: str) -> None:
    assert unescaped(escaped(text)) == text
    assert not escaped(text).startswith(("=", "+", "-", "@", "\t"))


def test_the_page_is_self_contained_and_holds_no_markup_of_users(report: Report) -> None:
    page = Page(report.folder / "usage.html")
    assert "script" not in page.tags
    assert page.fetched == []
    assert "url(" not in page.text
    assert "@import" not in page.text
    assert "&lt;script&gt;" in page.text
    # Hours 10, 11 and 12 of one topic: three bars.
    assert page.tags.count("rect") == 3


def test_the_page_says_which_prices_nothing_is_metered_for(report: Report) -> None:
    text = (report.folder / "usage.html").read_text(encoding="utf-8")
    rows = [row.partition("</tr>")[0] for row in text.split("<tr>")]
    said = {name: next(row for row in rows if f"<td>{name}</td>" in row) for name in PRICED}
    assert "not metered yet" in said["node_seconds"]
    assert "not metered yet" not in said["ingress_bytes"]


@pytest.mark.check
def test_the_same_inputs_give_the_same_bytes_however_they_are_read(
    report: Report, spark: SparkSession, tmp_path: Path
) -> None:
    root = report.folder.parent.parent
    again = report_of(spark, root, thawed(root, report.folder.name))
    assert again == report
    closes = minutes([(1 << 20, 100 + index) for index in range(150)])
    closes.append(Close(1, (Sum(7, 1, "key_gone", 17),), partition=1))
    names = export(organization=FORMULA, topic=MARKUP)
    with partitioned(spark, 5):
        rows, order = [*closes, closes[3]], random.Random(5)
        elsewhere = frozen(spark, tmp_path, rows, batches_of(closes), names, order=order)
        assert elsewhere.sha256 == report.folder.name
        other = report_of(spark, tmp_path, elsewhere)
    assert other.manifest["files"] == report.manifest["files"]


def test_an_archive_that_was_changed_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    archive = frozen(spark, tmp_path, minutes([(10, 1)]))
    path = archive.folder / "usage-00000.parquet"
    stray = path.with_name("usage-00001.parquet")
    stray.write_bytes(path.read_bytes())
    with pytest.raises(InputError, match=r"ARCHIVE_DAMAGED: usage-00001\.parquet"):
        thawed(tmp_path, archive.sha256)
    stray.unlink()
    path.write_bytes(path.read_bytes()[:-1] + b"\0")
    with pytest.raises(InputError, match="ARCHIVE_DAMAGED"):
        thawed(tmp_path, archive.sha256)


@pytest.mark.check
def test_a_missing_close_marks_the_run_and_is_listed(spark: SparkSession, tmp_path: Path) -> None:
    closes = minutes([(10, 1), (20, 2), (30, 3)])
    archive = frozen(spark, tmp_path, [closes[0], closes[2]], batches_of(closes))
    report = report_of(spark, tmp_path, archive)
    assert report.manifest["complete"] is False
    assert report.manifest["gaps"] == 1
    document = json.loads((report.folder / "usage.json").read_bytes())
    assert document["gaps"][0]["after_sequence"] == "1"
    assert "are missing" in (report.folder / "usage.html").read_text()


def test_no_usage_at_all_is_an_empty_report(spark: SparkSession, tmp_path: Path) -> None:
    report = report_of(spark, tmp_path, frozen(spark, tmp_path, []))
    assert csv_rows(report) == []
    document = json.loads((report.folder / "usage.json").read_bytes())
    assert document["totals"]["amount_exact"] == "0.000000000"
