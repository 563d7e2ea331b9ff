"""The retention report appears whole, says the same in every format, and the same again."""

import csv
import hashlib
import json
import random
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from headrace.evidence import canonical_json, verify
from reports.__main__ import main
from reports.errors import InputError
from reports.formats import text_of, unescaped
from reports.input.freeze import SCHEMA
from reports.output.publish import Report
from reports.retention.freeze import FrozenRetention, thawed_retention
from reports.retention.offsets import Commit
from reports.retention.rows import COLUMNS
from reports.retention_run import retention_report_of
from tests.reports.building import HOUR_US, TEN_US
from tests.reports.cases import partitioned
from tests.reports.pages import Page
from tests.reports.retention.building import (
    DAY_MS,
    MIB,
    Picture,
    Stored,
    Trim,
    export,
    frozen,
    handles,
    hold,
    log_of,
    policy,
)
from tests.support.shape import strange
from tests.support.stories.retention_story import Told

MARKUP = "<script>alert(1)</script>"
NOW_US = TEN_US + 2 * HOUR_US
# Three trims by size of one topic, and one by time of another that is gone.
TRIMS = [
    Trim(1, 0, 99),
    Trim(2, 100, 199, newest_us=TEN_US + HOUR_US // 2, oldest_us=TEN_US),
    Trim(3, 200, 249, bytes=MIB // 2, cause="purge", newest_us=TEN_US + 7),
    Trim(1, 0, 9, topic=90, topic_id="tp_gone", cause="time", version=4),
]
LOG = log_of([(MIB, TEN_US + index * HOUR_US // 8) for index in range(16)], base=250)
PICTURES = [
    Picture(at_us=TEN_US, log_end=10),
    Picture(
        at_us=NOW_US,
        log_start=250,
        log_end=410,
        held_from=300,
        held_bytes=2 * MIB,
        retention_bytes=8 * MIB,
        newest_us=NOW_US,
    ),
]


def inputs(spark: SparkSession, root: Path, order: random.Random | None = None) -> FrozenRetention:
    """Hostile names, a hold, a group that lost records; the records in any order."""
    trims: list[Trim] = [*TRIMS, TRIMS[1]]
    batches: list[Stored] = list(LOG)
    return frozen(
        spark,
        root,
        trims=trims if order is None else order.sample(trims, len(trims)),
        pictures=PICTURES,
        batches=batches if order is None else order.sample(batches, len(batches)),
        names=export(
            policies=[
                policy(
                    retention_bytes=str(8 * MIB),
                    min_retention_ms=str(DAY_MS // 24),
                    sources={"retention_ms": "default", "retention_bytes": "topic"},
                )
            ],
            holds=[hold(from_offset="300", reason=MARKUP)],
            organization=MARKUP,
        ),
        topics=handles(partitions=2),
        commits=[Commit(16, 3, 0, "board", 240)],
    )


@pytest.fixture(scope="module")
def report(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Report:
    """The report of `inputs`."""
    root = tmp_path_factory.mktemp("reports")
    return retention_report_of(spark, root, inputs(spark, root))


def csv_rows(report: Report) -> list[dict[str, str]]:
    """The rows of retention.csv."""
    with (report.folder / "retention.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def document(report: Report) -> dict[str, object]:
    """retention.json."""
    found: dict[str, object] = json.loads((report.folder / "retention.json").read_bytes())
    return found


def test_the_four_formats_agree_to_the_last_digit(report: Report) -> None:
    parquet = pq.read_table(report.folder / "retention.parquet").to_pylist()
    items = document(report)["rows"]
    lines = csv_rows(report)
    assert isinstance(items, list)
    assert tuple(lines[0]) == COLUMNS
    assert len(parquet) == len(items) == len(lines) == 6
    for row, item, line in zip(parquet, items, lines, strict=True):
        texts = {name: text_of(name, value) for name, value in row.items()}
        assert {name: unescaped(cell) for name, cell in line.items()} == texts
        assert {name: value or "" for name, value in item.items()} == texts
    tables = Page(report.folder / "retention.html").tables
    gone, live = deletions_of(lines), live_of(lines)
    assert {(row[0], row[1]): row[2:5] for row in tables["Deletions"]} == gone
    assert {row[0]: row[1] for row in tables["Upcoming deletions"]} == live


def test_the_report_of_the_browser_tests_has_the_shape_of_this_one(report: Report) -> None:
    now = datetime(2026, 11, 27, tzinfo=UTC)
    broken = {"code": "UNREAD_AT_RISK", "partition": "0", "group": "slow", "detail": "Behind."}
    told = Told(
        "orders",
        "tp_1",
        ages=[MIB] * 10,
        gone=[{"time": MIB}],
        due=[MIB],
        violations=[broken],
    )
    real = {"topics": document(report)["topics"]}
    assert strange({"topics": [told.entry(now)]}, real) == set()
    assert {name for row in told.rows(now) for name in row} <= set(COLUMNS)


def deletions_of(rows: Sequence[dict[str, str]]) -> dict[tuple[str, str], list[str]]:
    """Bytes, records and trims by topic and cause, as the page writes them, from the CSV."""
    found: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in rows:
        if row["cause"]:
            found.setdefault((unescaped(row["topic"]), row["cause"]), []).append(row)
    return {
        place: [
            f"{sum(int(row['deleted_bytes']) for row in some):,}",
            f"{sum(int(row['deleted_records']) for row in some):,}",
            f"{len(some):,}",
        ]
        for place, some in found.items()
    }


def live_of(rows: Sequence[dict[str, str]]) -> dict[str, str]:
    """Live bytes of every topic that is there, as the page writes them, from the CSV."""
    found: dict[str, int] = {}
    for row in rows:
        if not row["cause"]:
            topic = unescaped(row["topic"])
            found[topic] = found.get(topic, 0) + int(row["live_bytes"])
    return {topic: f"{size:,}" for topic, size in found.items()}


def test_a_trim_counts_once_and_the_rows_add_up_to_the_totals(report: Report) -> None:
    totals = report.manifest["totals"]
    lines = csv_rows(report)
    assert isinstance(totals, dict)
    assert totals["trims"] == "4"
    assert totals["deleted_bytes"] == str(3 * MIB + MIB // 2)
    for name in ("deleted_bytes", "deleted_records", "live_bytes"):
        assert sum(int(line[name]) for line in lines) == int(totals[name])
    assert {line["cause"] for line in lines} == {"size", "purge", "time", ""}


def test_the_run_is_signed_and_its_files_and_sums_hold(report: Report) -> None:
    checks = {check.name: check.ok for check in verify(report.folder)}
    assert checks == dict.fromkeys(("files", "totals", "inputs", "signature", "chain"), True)


def test_a_topic_is_told_with_its_policy_causes_and_ages(report: Report) -> None:
    topics = document(report)["topics"]
    assert isinstance(topics, list)
    flights, gone = topics
    assert (gone["topic"], gone["exists"], gone["organization_id"]) == ("default/gone", False, "")
    assert flights["policy"]["sources"]["retention_bytes"] == "topic"
    size = next(one for one in flights["deleted"] if one["cause"] == "size")
    assert (size["trims"], size["records"], size["bytes"]) == ("2", "200", str(2 * MIB))
    # The youngest records of the two trims were 30 and 60 minutes old; half of all were 30.
    ages = [size[name] for name in ("age_min_ms", "age_p50_ms", "age_max_ms")]
    assert ages == ["1800000", "1800000", "3600000"]
    assert flights["live_bytes"] == str(16 * MIB)
    assert sum(int(one["bytes"]) for one in flights["ages"]) == 16 * MIB


def test_a_hold_blocks_what_the_policy_would_take(report: Report) -> None:
    topics = document(report)["topics"]
    assert isinstance(topics, list)
    flights = topics[0]
    # 8 MiB are beyond the limit, older than an hour and free only below offset 300: 5 batches.
    assert flights["upcoming"]["now"]["bytes"] == str(5 * MIB)
    assert flights["hold_blocked_bytes"] == str(2 * MIB)
    assert flights["held_bytes"] == str(11 * MIB)
    assert [one["id"] for one in flights["holds"]] == ["hold_1"]
    standing = [line for line in csv_rows(report) if not line["cause"]]
    assert [(line["hold_id"], line["partition"]) for line in standing] == [
        ("hold_1", "0"),
        ("hold_1", "1"),
    ]


def test_promises_that_were_broken_are_named(report: Report) -> None:
    found = report.manifest["violations"]
    assert isinstance(found, dict)
    assert {code: count for code, count in found.items() if count} == {
        # Five segments beyond 8 MiB are older than the promised hour, and below the hold.
        "OVER_RETAINED": 1,
        # Trimmed by size after 30 minutes; an hour was promised.
        "UNDER_RETAINED": 1,
        # The node has no minimum, an hour after it was wished.
        "POLICY_MISMATCH": 1,
        "UNREAD_DELETED": 1,
        "UNREAD_AT_RISK": 1,
    }


def test_the_page_is_self_contained_and_holds_no_markup_of_users(report: Report) -> None:
    page = Page(report.folder / "retention.html")
    assert "script" not in page.tags
    assert page.fetched == []
    assert "url(" not in page.text
    assert "&lt;script&gt;" in page.text
    assert page.tags.count("svg") == 3


@pytest.mark.check
def test_the_same_records_in_any_order_give_the_same_bytes(
    report: Report, spark: SparkSession, tmp_path: Path
) -> None:
    root = report.folder.parent.parent
    assert retention_report_of(spark, root, thawed_retention(root, report.folder.name)) == report
    again = inputs(spark, tmp_path)
    assert again.sha256 == report.folder.name
    with partitioned(spark, 5):
        other = retention_report_of(spark, tmp_path, inputs(spark, tmp_path, random.Random(7)))
    wanted = {name: report.manifest[name] for name in ("totals", "violations", "complete", "sums")}
    assert {name: other.manifest[name] for name in wanted} == wanted
    for name in ("csv", "parquet", "json", "html"):
        # Two of them name the archive, whose records lie in another order.
        content = (other.folder / f"retention.{name}").read_bytes()
        content = content.replace(other.folder.name.encode(), report.folder.name.encode())
        assert content == (report.folder / f"retention.{name}").read_bytes(), name


def test_an_archive_of_a_bill_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="ARCHIVE_MISSING"):
        thawed_retention(tmp_path, "0" * 64)
    bill = canonical_json({"schema": SCHEMA, "files": []})
    sha256 = hashlib.sha256(bill).hexdigest()
    (tmp_path / "inputs" / sha256).mkdir(parents=True)
    (tmp_path / "inputs" / sha256 / "inputs.json").write_bytes(bill)
    with pytest.raises(InputError, match=r"ARCHIVE_OF_ANOTHER_KIND.*reports usage"):
        thawed_retention(tmp_path, sha256)


def test_a_command_that_cannot_work_ends_in_one_line_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--uri", str(tmp_path), "--master", "local[1]", "--bootstrap", "127.0.0.1:1"]
    assert main(["retention", *where]) == 2
    bare = tmp_path / "export.json"
    bare.write_text("{}")
    assert main(["retention", *where, "--export", str(bare)]) == 4
    codes = [json.loads(line)["code"] for line in capsys.readouterr().out.splitlines()]
    assert codes == ["EXPORT_MISSING", "EXPORT_INVALID"]


@pytest.mark.check
def test_nothing_at_all_is_an_empty_report(spark: SparkSession, tmp_path: Path) -> None:
    empty = frozen(spark, tmp_path, topics=handles(()), names=export())
    report = retention_report_of(spark, tmp_path, empty)
    assert [line["cause"] for line in csv_rows(report)] == [""]
    assert report.manifest["complete"] is True
