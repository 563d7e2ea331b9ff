"""`headrace invoice` and `headrace report verify`, as they are typed."""

import json
import shutil
from pathlib import Path

import pytest

from headrace.evidence import MANIFEST, canonical_json, ledger_entries
from tests.headrace.cli.conftest import Run

PUBLISHED = Path(__file__).resolve().parents[3] / "data" / "published"


def test_invoices_are_listed_with_what_they_cost(headrace: Run) -> None:
    done = headrace("invoice", "list")
    assert done.code == 0
    lines = done.out.splitlines()
    assert (
        lines[0].split()
        == "PERIOD STATE BLOCKED TOTAL MONTHLY PROJECTION CURRENCY AS OF ORGANIZATION ID".split()
    )
    assert ["acme" in line for line in lines[1:5]] == [True, True, False, False]
    assert "not enough data" in lines[4]
    assert lines[2].split()[:4] == ["2026-11", "DRAFT", "yes", "5.00"]


@pytest.mark.parametrize("name", ["inv_2026-11", "2026-11"])
def test_an_invoice_is_shown_by_id_or_period_with_what_blocks_it(headrace: Run, name: str) -> None:
    done = headrace("invoice", "get", name)
    assert done.code == 0
    assert "ingress_bytes" in done.out
    assert "Blocked by log, Billed bytes match the log: 2 bytes differ." in done.err
    assert "Monthly projection: 7.500000000 EUR" in done.err
    body = json.loads(headrace("invoice", "get", name, "-o", "json").out)
    assert body["lines"][0]["amount_exact"] == "4.996000000"


def test_a_period_of_another_organization_alone_is_shown_without_a_rate(headrace: Run) -> None:
    done = headrace("invoice", "get", "2026-12")
    assert done.code == 0
    assert "not enough data (less than one hour of usage)" in done.err


def test_a_period_without_an_invoice_is_exit_code_3_and_says_what_draws_them(headrace: Run) -> None:
    done = headrace("invoice", "get", "2020-01")
    assert done.code == 3
    assert "headrace invoice list" in done.err


def test_runs_of_an_earlier_release_are_verified_without_any_service(headrace: Run) -> None:
    done = headrace("report", "verify", str(PUBLISHED), "-o", "json")
    assert done.code == 0, done.out
    checks = json.loads(done.out)["items"]
    assert {check["state"] for check in checks} == {"OK"}
    key = (PUBLISHED / "evidence" / "public.txt").read_text().strip()
    one = str(PUBLISHED / "usage" / "one")
    assert headrace("report", "verify", one, "--public-key", key).code == 0
    assert headrace("report", "verify", one, "--public-key", "0" * 64).code == 1
    head = next(check["detail"] for check in checks if check["name"] == "usage chain").split()[-1]
    assert headrace("report", "verify", str(PUBLISHED), "--head", head).code == 0
    cut = headrace("report", "verify", one, "--head", head, "--head", "0" * 64)
    assert (cut.code, "failed: head" in cut.err) == (1, True)


def test_the_ledger_names_its_entries_by_place_and_content() -> None:
    names = [path.name for path in ledger_entries(PUBLISHED / "evidence" / "usage")]
    assert names == ["00000001-f9f769e93eff2f32.json", "00000002-84834960ac0e3d1b.json"]


def test_a_run_that_was_changed_is_exit_code_1_with_what_differs(
    headrace: Run, tmp_path: Path
) -> None:
    shutil.copytree(PUBLISHED, tmp_path / "reports")
    folder = tmp_path / "reports" / "usage" / "two"
    manifest = json.loads((folder / MANIFEST).read_bytes())
    (folder / MANIFEST).write_bytes(canonical_json({**manifest, "path": "elsewhere"}))
    done = headrace("report", "verify", str(folder))
    assert done.code == 1
    assert "EVIDENCE_FAILED" in done.err
    assert "FAILED" in done.out


def test_a_folder_without_a_report_says_what_to_give(headrace: Run, tmp_path: Path) -> None:
    done = headrace("report", "verify", str(tmp_path))
    assert done.code == 8
    assert "EVIDENCE_INVALID" in done.err


def test_the_folder_of_a_kind_is_said_to_be_one_too_deep(headrace: Run) -> None:
    done = headrace("report", "verify", str(PUBLISHED / "usage"))
    assert done.code == 8
    assert "one folder too deep" in done.err
    assert str(PUBLISHED) in done.err
