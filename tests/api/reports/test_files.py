"""Files of a published run: to whom they are shown, how a browser takes them, and when not."""

import hashlib
from pathlib import Path

import pytest

from api.db.tables.reports import ReportRun
from tests.support.builders.control_plane import Body, Service

FILES = {
    "usage.html": b"<style>h1{color:red}</style><h1>Usage</h1><script>alert(1)</script>",
    "usage.csv": b"a,b\r\n1,2\r\n",
    "usage.json": b"{}",
}


@pytest.fixture
def run(service: Service) -> Body:
    """A run that has published FILES, and an invoice page of another organization."""
    run = service.post("/v1/report-runs", {"kind": "usage"})
    folder = Path(service.settings.reports.uri) / "usage" / "result"
    folder.mkdir(parents=True)
    for name, content in FILES.items():
        (folder / name).write_bytes(content)
    with service.database.write() as session:
        row = session.get_one(ReportRun, run["id"])
        row.state = "SUCCEEDED"
        row.result = _manifest(FILES)
    return run


def _manifest(files: dict[str, bytes]) -> Body:
    totals = dict.fromkeys(("bytes_in_log", "bytes_billed", "records", "rows"), "0")
    return {
        "kind": "usage",
        "input_sha256": "0" * 64,
        "path": "usage/result",
        "files": [
            {
                "name": name,
                "bytes": str(len(content)),
                "sha256": hashlib.sha256(content).hexdigest(),
            }
            for name, content in files.items()
        ],
        "totals": {**totals, "amount_exact": "0", "currency": "EUR"},
    }


def test_a_page_is_shown_in_a_sandbox_and_anything_else_is_kept(
    service: Service, run: Body
) -> None:
    for name, content in FILES.items():
        address = f"/v1/report-runs/{run['id']}/files/{name}"
        answer = service.client.get(address, headers=service.owner)
        assert (answer.status_code, answer.content) == (200, content)
        kept = "inline" if name == "usage.html" else "attachment"
        assert answer.headers["Content-Disposition"] == f'{kept}; filename="{name}"'
        policy = answer.headers["Content-Security-Policy"]
        assert policy.startswith("sandbox; default-src 'none'; style-src 'unsafe-inline'")
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("name", ["usage.parquet", "..%2Fusage.csv", "%2E%2E"])
def test_a_name_that_the_manifest_does_not_hold_is_not_found(
    service: Service, run: Body, name: str
) -> None:
    answer = service.client.get(f"/v1/report-runs/{run['id']}/files/{name}", headers=service.owner)
    assert answer.status_code == 404


def test_an_organization_reads_the_files_of_its_invoices_and_no_others(
    service: Service, run: Body, other: tuple[str, dict[str, str]]
) -> None:
    mine = f"invoice-{other[0]}-2026-03.html"
    folder = Path(service.settings.reports.uri) / "usage" / "result"
    (folder / mine).write_bytes(b"<h1>Invoice</h1>")
    with service.database.write() as session:
        row = session.get_one(ReportRun, run["id"])
        manifest = _manifest({**FILES, mine: b"<h1>Invoice</h1>"})
        entry: Body = {"organization_id": other[0], "name": mine.removesuffix(".html")}
        row.result = {**manifest, "invoices": [entry]}
    base = f"/v1/report-runs/{run['id']}/files"
    assert service.client.get(f"{base}/{mine}", headers=other[1]).status_code == 200
    for name in FILES:
        assert service.client.get(f"{base}/{name}", headers=other[1]).status_code == 404
    viewer = service.key("billing-viewer")
    assert service.client.get(f"{base}/{mine}", headers=viewer).status_code == 404
    assert service.client.get(f"{base}/usage.csv", headers=viewer).status_code == 404
    assert service.client.get(f"{base}/{mine}", headers=service.owner).status_code == 200


def test_a_file_that_was_changed_since_is_not_handed_out(service: Service, run: Body) -> None:
    path = Path(service.settings.reports.uri) / "usage" / "result" / "usage.csv"
    path.write_bytes(path.read_bytes().replace(b"1", b"2") + b" ")
    answer = service.client.get(
        f"/v1/report-runs/{run['id']}/files/usage.csv", headers=service.owner
    )
    assert answer.json()["code"] == "RESULT_REJECTED"


def test_a_run_that_has_published_nothing_has_no_files(service: Service) -> None:
    run = service.post("/v1/report-runs", {"kind": "usage"})
    answer = service.client.get(
        f"/v1/report-runs/{run['id']}/files/usage.csv", headers=service.owner
    )
    assert answer.status_code == 404
    assert "usage.csv" in answer.json()["detail"]
