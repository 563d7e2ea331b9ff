"""Invoices: loaded with their run or not at all, seen by whom they concern, files and all."""

import hashlib
import json
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import JsonValue as Json
from sqlalchemy import select

from api.db.tables.topics import TopicSpan
from tests.api.reports.test_reports import loop_of, publish, row_of, started
from tests.support.builders.control_plane import Body, Service

PERIOD = {
    "period": "2026-03",
    "period_start": "2026-03-01T00:00:00Z",
    "period_end": "2026-04-01T00:00:00Z",
}
GREEN = {
    "name": "lines",
    "title": "Line items add up to the invoice",
    "state": "GREEN",
    "figures": {"lines": "1"},
    "detail": "They add up.",
}
RED = {**GREEN, "name": "log", "state": "RED"}


def line(number: int, amount: str) -> Body:
    """A line as the job draws it."""
    return {
        "line": str(number), "sku": "ingress_bytes", "description": "Ingress", "quantity": "1",
        "unit": "B", "unit_price": "0.05", "amount_exact": f"{amount}0000000", "amount": amount,
        "currency": "EUR", "charge_class": "", "corrects_line": "",
        "period_start": PERIOD["period_start"], "period_end": PERIOD["period_end"],
        "topics": [], "hours": [],
    }  # fmt: skip


def drawn(organization_id: str, amounts: Sequence[str], total: str, check: Body = GREEN) -> Body:
    """invoice.json as the job writes it."""
    return {
        **PERIOD, "organization_id": organization_id, "name": f"invoice-{organization_id}-2026-03",
        "state": "DRAFT", "blocked": check["state"] == "RED", "as_of": "2026-03-01T12:00:00Z",
        "currency": "EUR", "total": total, "metered_exact": "1.000000000",
        "monthly_minimum": "5.00", "amount_per_month": "9.000000000",
        "rate_from": "2026-03-01T02:00:00Z",
        "price_book_version": "demo-1", "reconciliation": [check],
        "lines": [line(number + 1, amount) for number, amount in enumerate(amounts)],
    }  # fmt: skip


def with_invoices(service: Service, manifest: Body, invoices: Sequence[Body]) -> Body:
    """The manifest with the files of these invoices beside usage.csv."""
    folder = Path(service.settings.reports.uri) / manifest["path"]
    entries = []
    for invoice in invoices:
        for kind in ("json", "html"):
            content = json.dumps(invoice).encode()
            (folder / f"{invoice['name']}.{kind}").write_bytes(content)
            digest = hashlib.sha256(content).hexdigest()
            name = f"{invoice['name']}.{kind}"
            manifest["files"].append({"name": name, "bytes": len(content), "sha256": digest})
        members = ("organization_id", "period", "name", "blocked", "total")
        entries.append({name: invoice[name] for name in members})
    return {**manifest, "invoices": entries, "checks": [GREEN]}


def put(service: Service, invoices: Sequence[Body], quantity: str = "1") -> tuple[Body, Body]:
    """A run that publishes a row and these invoices: the run, and the answer."""
    topic = service.get("/v1/topics")["items"] or [service.topic("orders")]
    run, header = started(service)
    manifest = with_invoices(service, publish(service, [row_of(topic[0], quantity, "0")]), invoices)
    path = f"/v1/report-runs/{run['id']}/result"
    return run, service.client.put(path, json=manifest, headers=header)


def home(service: Service) -> str:
    """The organization of the owner key."""
    return str(service.get(f"/v1/api-keys/{service.first.owner_key_id}")["organization_id"])


def test_a_result_brings_its_invoices_and_the_next_one_draws_them_anew(service: Service) -> None:
    mine = home(service)
    run, response = put(service, [drawn(mine, ["1.00", "4.00"], "5.00")])
    assert response.status_code == 200, response.text
    (listed,) = service.get("/v1/invoices")["items"]
    assert (listed["total"], listed["state"], listed["period"]) == ("5.00", "DRAFT", "2026-03")
    assert (listed["run_id"], "lines" in listed) == (run["id"], False)
    assert (listed["own"], listed["amount_per_month"]) == (True, "9.000000000")
    assert listed["organization"] == service.get(f"/v1/orgs/{mine}")["name"]
    assert listed["rate_from"].startswith("2026-03-01T02:00:00")
    whole = service.get(f"/v1/invoices/{listed['id']}")
    assert [one["amount"] for one in whole["lines"]] == ["1.00", "4.00"]
    assert whole["reconciliation"] == [GREEN]

    again, response = put(service, [drawn(mine, ["7.00"], "7.00", RED)], "2")
    assert response.status_code == 200, response.text
    after = service.get(f"/v1/invoices/{listed['id']}")
    assert (after["run_id"], after["total"], after["blocked"]) == (again["id"], "7.00", True)
    assert len(after["lines"]) == 1


def test_a_rate_that_is_too_early_to_tell_is_left_out(service: Service) -> None:
    young = {**drawn(home(service), ["5.00"], "5.00"), "amount_per_month": None}
    _, response = put(service, [young])
    assert response.status_code == 200, response.text
    (listed,) = service.get("/v1/invoices")["items"]
    assert "amount_per_month" not in listed


def test_the_latest_periods_come_first_page_by_page_though_one_is_gone_in_between(
    service: Service,
) -> None:
    mine = home(service)
    months = ["2026-02", "2025-12", "2026-03", "2026-01"]
    invoices = [
        {
            **drawn(mine, ["5.00"], "5.00"),
            "period": month,
            "period_start": f"{month}-01T00:00:00Z",
            "name": f"invoice-{mine}-{month}",
        }
        for month in months
    ]
    _, response = put(service, invoices)
    assert response.status_code == 200, response.text
    path = "/v1/invoices?newest_first=true&page_size=2"
    page = service.get(path)
    assert [each["period"] for each in page["items"]] == ["2026-03", "2026-02"]
    put(service, [one for one in invoices if one["period"] != "2026-02"], "2")
    rest = service.get(f"{path}&page_token={page['next_page_token']}")
    assert [each["period"] for each in rest["items"]] == ["2026-01", "2025-12"]
    assert "next_page_token" not in rest
    refused = service.client.get(
        f"/v1/invoices?page_token={page['next_page_token']}", headers=service.owner
    )
    assert refused.json()["code"] == "PAGE_TOKEN_INVALID"


STRANGE: dict[str, tuple[str, Json]] = {
    "a long text": ("description", "d" * 256),
    "a NUL": ("description", "\0"),
    "a huge line": ("line", 1 << 63),
    "a line twice": ("line", 1),
    "a time that is nowhere": ("as_of", "2026-03-01T12:00:00"),
}


@pytest.mark.parametrize(
    "spoiled", ["total", "blocked", "line", "organization", "document", *STRANGE]
)
def test_an_invoice_that_does_not_hold_refuses_the_whole_result(
    service: Service, spoiled: str
) -> None:
    mine = home(service)
    service.topic("orders")
    invoice = drawn(mine, ["1.00", "4.00"], "5.00")
    if spoiled == "total":
        invoice["total"] = "5.01"
    elif spoiled == "blocked":
        invoice["blocked"] = True
    elif spoiled == "line":
        invoice["lines"][0]["amount"] = "1.0x"
    elif spoiled == "organization":
        invoice["organization_id"] = "org_nobody"
    elif spoiled == "document":
        del invoice["lines"]
    else:
        name, value = STRANGE[spoiled]
        (invoice if name == "as_of" else invoice["lines"][1])[name] = value
    _, response = put(service, [invoice])
    assert (response.status_code, response.json()["code"]) == (400, "RESULT_REJECTED")
    assert service.get("/v1/invoices")["items"] == []
    assert "run_id" not in service.get("/v1/usage")


def test_a_run_that_is_killed_leaves_what_is_shown(service: Service) -> None:
    run, _ = put(service, [drawn(home(service), ["1.00"], "1.00")])
    shown = service.get("/v1/usage"), service.get("/v1/invoices")
    killed = service.post("/v1/report-runs", {"kind": "usage"})
    assert loop_of(service, status=137).run_once() == 1
    assert service.get(f"/v1/report-runs/{killed['id']}")["state"] == "FAILED"
    assert (service.get("/v1/usage"), service.get("/v1/invoices")) == shown
    assert shown[0]["run_id"] == run["id"]


def test_organizations_see_their_own_invoices_and_files_and_never_each_others(
    service: Service, other: tuple[str, dict[str, str]]
) -> None:
    mine, (theirs, their_key) = home(service), other
    invoices = [drawn(mine, ["1.00"], "1.00"), drawn(theirs, ["2.00"], "2.00", RED)]
    run, response = put(service, invoices)
    assert response.status_code == 200, response.text
    member, viewer = service.key("owner"), service.key("billing-viewer", theirs)
    project = service.post("/v1/projects", {"name": "sales"})
    inside = service.key("owner", project_id=project["id"])

    def seen(key: dict[str, str]) -> list[str]:
        return [one["organization_id"] for one in service.get("/v1/invoices", key)["items"]]

    assert (seen(member), seen(their_key), seen(viewer)) == ([mine], [theirs], [theirs])
    assert sorted(seen(service.owner)) == sorted([mine, theirs])
    assert seen(inside) == []

    identity = service.get("/v1/invoices", their_key)["items"][0]["id"]
    assert service.client.get(f"/v1/invoices/{identity}", headers=member).status_code == 404
    assert service.client.get(f"/v1/invoices/{identity}", headers=inside).status_code == 404
    assert service.client.get(f"/v1/invoices/{identity}", headers=service.owner).status_code == 200

    def status(key: dict[str, str], name: str) -> int:
        path = f"/v1/report-runs/{run['id']}/files/{name}"
        return int(service.client.get(path, headers=key).status_code)

    own, foreign = f"invoice-{mine}-2026-03.html", f"invoice-{theirs}-2026-03.html"
    assert (status(member, own), status(member, foreign)) == (200, 404)
    assert (status(viewer, foreign), status(viewer, own)) == (200, 404)
    assert (status(member, "usage.csv"), status(inside, own)) == (404, 404)
    assert (status(service.owner, "usage.csv"), status(service.owner, foreign)) == (200, 200)


def test_files_are_those_of_the_manifest_and_pages_open_in_a_sandbox(service: Service) -> None:
    mine = home(service)
    run, _ = put(service, [drawn(mine, ["1.00"], "1.00")])
    folder = Path(service.settings.reports.uri)
    (folder / "secret").write_text("x")
    path = f"/v1/report-runs/{run['id']}/files"
    for name in ("..%2f..%2fsecret", "secret", "manifest.json", "%2e%2e"):
        assert service.client.get(f"{path}/{name}", headers=service.owner).status_code == 404, name
    page = service.client.get(f"{path}/invoice-{mine}-2026-03.html", headers=service.owner)
    assert page.headers["Content-Security-Policy"].startswith("sandbox; default-src 'none'")
    assert page.headers["Content-Disposition"].startswith("inline")
    table = service.client.get(f"{path}/usage.csv", headers=service.owner)
    assert table.headers["Content-Disposition"].startswith("attachment")
    assert table.headers["X-Content-Type-Options"] == "nosniff"


def test_the_reconciliation_is_ones_own_and_that_of_the_run_the_operators(
    service: Service, other: tuple[str, dict[str, str]]
) -> None:
    assert service.get("/v1/usage/reconciliation") == {"green": False, "invoices": []}
    mine, (theirs, their_key) = home(service), other
    run, _ = put(service, [drawn(mine, ["1.00"], "1.00"), drawn(theirs, ["2.00"], "2.00", RED)])
    found = service.get("/v1/usage/reconciliation", their_key)
    assert (found["green"], found["run_id"], "checks" in found) == (False, run["id"], False)
    assert [one["checks"] for one in found["invoices"]] == [[RED]]
    assert service.get("/v1/usage/reconciliation", service.key("viewer"))["green"] is True
    assert service.get("/v1/usage/reconciliation")["checks"] == [GREEN]


def test_a_topics_partitions_are_spans_from_its_wish_to_the_wish_that_it_goes(
    service: Service,
) -> None:
    topic = service.topic("orders", partitions=2)
    path, begun = f"/v1/topics/{topic['id']}", service.clock()
    service.clock.advance(60)
    patched = service.client.patch(path, json={"spec": {"partitions": 3}}, headers=service.owner)
    assert patched.status_code == 202, patched.text
    service.clock.advance(60)
    labels = service.client.patch(path, json={"labels": {"team": "a"}}, headers=service.owner)
    assert labels.status_code == 200, labels.text
    service.client.delete(path, headers={**service.owner, "If-Match": labels.headers["ETag"]})
    with service.database.read() as session:
        rows = session.scalars(select(TopicSpan).order_by(TopicSpan.generation)).all()
        spans = [
            (row.partitions, row.started_at - begun, row.ended_at and row.ended_at - begun)
            for row in rows
        ]
    minute = timedelta(minutes=1)
    assert spans == [(2, 0 * minute, minute), (3, minute, 2 * minute)]
    run, header = started(service)
    inputs = service.get(f"/v1/report-runs/{run['id']}/inputs", header)
    assert [(one["partitions"], one["from"]) for one in inputs["topic_lifecycle"]] == [
        (2, "2026-03-01T12:00:00.000000Z"),
        (3, "2026-03-01T12:01:00.000000Z"),
    ]
    assert inputs["as_of"] == "2026-03-01T12:02:00.000000Z"
