"""A platform on which every page of the console has something to show, and in every text that
somebody else may have written there is markup that must be shown and never run.

Owns what is on that platform. Refuses to open a browser page: that is the tests' own.
"""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

from httpx2 import Client

from tests.support.processes.browser import Console
from tests.support.processes.platform import wait_until
from tests.support.stories.invoice_story import invoice_of
from tests.support.stories.retention_story import Told
from tests.support.stories.retention_story import text as moment
from tests.support.stories.scripted_reports import ScriptedReports

# Short enough for a display name, and for the version of a price book.
CANARY = "<img src=x onerror=alert(1)>"
NOW = datetime.now(UTC)
MONTH = NOW.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
PRICE = Decimal("0.00000000004656612873077392578125")
GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Story:
    """A console that is full. `ids`: of `topic`, `invoice`, `run`, `failed`; `reader`: the secret
    of a key that reads bills and nothing else."""

    console: Console
    ids: Mapping[str, str]
    reader: str


def told(console: Console, jobs: ScriptedReports) -> Story:
    """Puts everything there; one report of each kind runs, and one fails."""
    header = {"Authorization": f"Bearer {console.platform.profile().key}"}
    with Client(base_url=console.url, headers=header, timeout=120) as rest:
        topic = _post(rest, "topics", {"name": "orders", "display_name": CANARY})
        _written(rest, topic["id"])
        console.platform.cli("consume", "orders", "-g", "past", "--from", "start", "-n", "1")
        viewer = {"name": "worker", "display_name": CANARY, "spec": {"role": "viewer"}}
        _post(rest, "api-keys", viewer)
        hold = {"topic_id": topic["id"], "case_id": CANARY, "reason": CANARY}
        _post(rest, "legal-holds", hold)
        failed = _run(rest, "usage")
        jobs.fail(code="NODE_AWAY", message=CANARY, hint=CANARY)
        _settled(rest, failed, "FAILED")
        run = _run(rest, "usage")
        _publish_usage(jobs, topic)
        _settled(rest, run, "SUCCEEDED")
        kept = _run(rest, "retention")
        _publish_retention(jobs, topic["id"])
        _settled(rest, kept, "SUCCEEDED")
        invoice = rest.get("/v1/invoices").json()["items"][0]["id"]
        accountant = {"name": "accountant", "spec": {"role": "billing-viewer"}}
        reader = _post(rest, "api-keys", accountant)["secret"]
    ids = {"topic": topic["id"], "invoice": invoice, "run": run, "failed": failed}
    return Story(console, ids, reader)


def _post(rest: Client, path: str, body: Mapping[str, object]) -> dict[str, str]:
    answer = rest.post(f"/v1/{path}", json=body)
    assert answer.status_code in (200, 201, 202), answer.text
    found: dict[str, str] = answer.json()
    return found


def _written(rest: Client, topic_id: str) -> None:
    """One message that is markup from end to end, once a node has the topic."""
    code = base64.b64encode(CANARY.encode()).decode()
    headers = [{"key": CANARY, "value": code}]
    body = {"key": code, "value": code, "headers": headers, "partition": 0}

    def taken() -> bool:
        return rest.post(f"/v1/topics/{topic_id}/messages", json=body).status_code == 201

    wait_until(taken, "the message is stored")


def _run(rest: Client, kind: str) -> str:
    return _post(rest, "report-runs", {"kind": kind})["id"]


def _settled(rest: Client, run_id: str, state: str) -> None:
    wait_until(
        lambda: rest.get(f"/v1/report-runs/{run_id}").json()["state"] == state,
        f"the report is {state}",
    )


def _publish_usage(jobs: ScriptedReports, topic: Mapping[str, str]) -> None:
    begin = f"{MONTH:%Y-%m-%dT%H:%M:%SZ}"
    row = {
        "organization": "default", "project": "default", "cluster": "local", "stream": "default",
        "topic": "orders", "topic_id": topic["id"], "principal": CANARY,
        "meter": "ingress_bytes", "unit": "B",
        "window_start": begin, "window_end": begin.replace("T00:", "T01:"),
        "quantity": str(GIB), "unit_price": format(PRICE, "f"), "currency": "EUR",
        "amount": format(round(GIB * PRICE, 9), "f"), "price_book_version": "demo-1",
        "estimated": "false",
    }  # fmt: skip
    invoice = json.loads(json.dumps(invoice_of(topic["organization_id"], [row], MONTH, NOW, "log")))
    invoice["price_book_version"] = CANARY
    for line in invoice["lines"]:
        line["description"] = CANARY
        for share in line["topics"]:
            share["topic"] = CANARY
    for check in invoice["reconciliation"]:
        check.update(detail=CANARY, figures={CANARY: CANARY})
    jobs.publish_usage([row], CANARY, [invoice], said={"partitions": {"EXACT": 1, CANARY: 1}})


def _publish_retention(jobs: ScriptedReports, topic_id: str) -> None:
    mib = 1 << 20
    broken = {"code": "UNREAD_AT_RISK", "partition": "0", "group": CANARY, "detail": CANARY}
    entry = Told(
        CANARY,
        topic_id,
        ages=[mib] * 10,
        gone=[{"time": mib}, {"size": mib}],
        due=[mib, mib],
        violations=[broken],
        policy={"by": CANARY},
    )
    jobs.publish_retention([entry.entry(NOW)], entry.rows(NOW), moment(NOW))
