"""The pictures of the console in docs/console, taken anew of a platform with a month to show.

    python -m tests.support.stories.console_pictures docs/console

Owns the story that the pictures tell and the list of them. Refuses chance: only times, ids and the
rates of the demo differ from one run to the next. Takes about seven minutes, five of which fill the
chart of the home page.
"""

import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Final

from httpx2 import Client
from playwright.sync_api import Page, expect

from tests.support.processes.browser import Console
from tests.support.processes.platform import wait_until
from tests.support.stories.invoice_story import invoice_of
from tests.support.stories.retention_story import Told
from tests.support.stories.retention_story import text as moment
from tests.support.stories.scripted_reports import ScriptedReports

NOW: Final = datetime.now(UTC)
MONTH: Final = NOW.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
MIB: Final = 1 << 20
# MiB of ingress a day of each topic.
TOPICS: Final = {
    "orders": 3100,
    "returns": 1900,
    "clicks": 1100,
    "payments": 640,
    "audit-trail": 410,
    "stock": 170,
}
# Of each meter: its unit, the price of one, and how many a day there are to a MiB of ingress.
METERS: Final = {
    "ingress_bytes": ("B", Decimal("0.00000000004656612873077392578125"), MIB),
    "partition_seconds": ("s", Decimal("0.000000555555555555555555"), 0),
    "requests": ("1", Decimal(0), 66),
}
FULL_CHART_MS: Final = 360_000
HEIGHT: Final = 850


def main() -> None:
    """Takes every picture into the folder that the command line names."""
    folder = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as temporary:
        console = Console(Path(temporary) / "pictures", "--demo")
        jobs = ScriptedReports(console)
        with console, console.page() as page:
            page.goto(console.url)
            page.locator("#secret").wait_for()
            _shot(page, folder / "signin.png", HEIGHT)
            addresses = _told(console, jobs)
            console.sign_in(page, "/console/")
            for theme, suffix in (("Light", ""), ("Dark", "-dark")):
                _pictures(page, console, addresses, folder, theme, suffix)


def _told(console: Console, jobs: ScriptedReports) -> dict[str, str]:
    """Makes what the pictures show. Addresses by the names of pictures."""
    header = {"Authorization": f"Bearer {console.platform.profile().key}"}
    with Client(base_url=console.url, headers=header, timeout=30) as rest:
        topics = {name: _topic(console, name) for name in TOPICS}
        ids = {name: str(topic["id"]) for name, topic in topics.items()}
        lines = b"".join(b'{"order": %d}\n' % number for number in range(400))
        console.platform.cli("produce", "orders", stdin=lines)
        console.platform.cli("consume", "orders", "-g", "billing", "--from", "start", "-n", "250")
        _keys_and_holds(console)
        run = _run(rest, "usage")
        rows = list(_rows(ids))
        organization = str(topics["orders"]["organization_id"])
        last = (MONTH - timedelta(days=1)).replace(day=1)
        drafts = [
            invoice_of(organization, rows, MONTH, NOW),
            invoice_of(organization, rows, last, MONTH),
        ]
        jobs.publish_usage(rows, "<h1>Usage report</h1>", drafts)
        _settled(rest, run)
        kept = _run(rest, "retention")
        told = list(_retention(ids))
        entries = [each.entry(NOW) for each in told]
        jobs.publish_retention(
            entries, [row for each in told for row in each.rows(NOW)], moment(NOW)
        )
        _settled(rest, kept)
        invoices = rest.get("/v1/invoices?newest_first=true").json()["items"]
        flights = rest.get("/v1/topics").json()["items"]
        demo = next(topic["id"] for topic in flights if topic["name"] == "flights")
        wait_until(
            lambda: "STABLE" in {each["state"] for each in _groups(rest)},
            "a group of the demo reads",
        )
    return {
        "home": "/",
        "topics": "/topics",
        "messages": f"/topics/{demo}?tab=messages",
        "settings": f"/topics/{ids['orders']}?tab=settings",
        "groups": "/groups",
        "group": "/groups/delays",
        "operations": "/operations",
        "nodes": "/nodes",
        "keys": "/keys",
        "usage": "/usage",
        "invoice": f"/invoices/{invoices[0]['id']}",
        "report": f"/reports/{run}",
        "retention": "/retention",
        "holds": "/retention?tab=holds",
    }


def _topic(console: Console, name: str) -> Mapping[str, object]:
    made = console.platform.cli("topic", "create", name, "-o", "json").stdout
    found: Mapping[str, object] = json.loads(made)
    return found


def _keys_and_holds(console: Console) -> None:
    for name, role in (("billing-worker", "editor"), ("dashboard", "viewer")):
        console.platform.cli("key", "create", name, "--role", role)
    for name, case in (("returns", "CASE-7"), ("payments", "CASE-12")):
        reason = ("--reason", "requested by the court" if case == "CASE-7" else "tax audit")
        console.platform.cli("hold", "create", name, "--case", case, *reason)


HEIGHTS: Final = {"settings": 1030, "usage": 900, "invoice": 1100, "report": 950, "retention": 1150}


def _pictures(
    page: Page,
    console: Console,
    addresses: Mapping[str, str],
    folder: Path,
    theme: str,
    suffix: str,
) -> None:
    page.get_by_role("button", name=theme, exact=True).click()
    for name, address in addresses.items():
        page.goto(f"{console.url}/console{address}")
        page.get_by_role("heading", level=1).wait_for()
        expect(page.get_by_role("progressbar", name="Loading")).to_have_count(0)
        if name == "home":
            # Until the chart spans its five minutes it says since when it measures.
            note = page.get_by_text("Measured since")
            page.get_by_role("heading", name="Busiest topics").wait_for()
            expect(note).to_have_count(0, timeout=FULL_CHART_MS)
        if name == "messages":
            _open_message(page)
        if name == "settings":
            page.fill("#set-retention", "1h")
            page.get_by_role("button", name="Review changes").click()
            page.get_by_text("Before you save").wait_for()
        _shot(page, folder / f"{name}{suffix}.png", HEIGHTS.get(name, HEIGHT))


def _open_message(page: Page) -> None:
    """A live tail that is paused, and its newest message in full."""
    page.get_by_label("Live").check()
    rows = page.locator("table[aria-label=Messages] tbody tr")
    rows.nth(20).wait_for()
    page.get_by_role("button", name="Pause").click()
    rows.first.get_by_role("button").click()
    page.get_by_role("region", name="Message").wait_for()


def _shot(page: Page, path: Path, height: int) -> None:
    page.set_viewport_size({"width": 1280, "height": height})
    page.mouse.move(640, 4)
    # Charts follow the size of the window.
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 400)))")
    page.screenshot(path=path)


def _run(rest: Client, kind: str) -> str:
    return str(rest.post("/v1/report-runs", json={"kind": kind}).json()["id"])


def _settled(rest: Client, run: str) -> None:
    wait_until(
        lambda: rest.get(f"/v1/report-runs/{run}").json()["state"] == "SUCCEEDED",
        "the report is published",
    )


def _groups(rest: Client) -> list[Mapping[str, str]]:
    found: list[Mapping[str, str]] = rest.get("/v1/groups").json().get("items", [])
    return found


def _rows(ids: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Lines of usage.csv: every topic and meter, each day of this month and of the last one."""
    last = (MONTH - timedelta(days=1)).replace(day=1)
    days = [last + timedelta(days=n) for n in range((NOW - last).days + 1)]
    for number, day in enumerate(days):
        # A week has a shape: less on its last two days.
        level = (6 if day.weekday() > 4 else 10) + number * 7 % 5
        for name, topic_id in ids.items():
            for meter, (unit, price, each) in METERS.items():
                size = TOPICS[name] * level // 12
                quantity = size * each if each else 6 * 86_400
                yield {
                    "organization": "default", "project": "default", "cluster": "local",
                    "stream": "default", "topic": name, "topic_id": topic_id,
                    "principal": "billing-worker", "meter": meter, "unit": unit,
                    "window_start": f"{day:%Y-%m-%d}T00:00:00Z",
                    "window_end": f"{day:%Y-%m-%d}T01:00:00Z",
                    "quantity": str(quantity), "unit_price": format(price, "f"),
                    "currency": "EUR", "amount": format(round(quantity * price, 9), "f"),
                    "price_book_version": "demo-1", "estimated": "false",
                }  # fmt: skip


AGE_PARTS: Final[Sequence[int]] = (2, 9, 22, 140, 0, 0, 0, 0, 0, 0)


def _retention(ids: Mapping[str, str]) -> Iterator[Told]:
    for index, (name, topic_id) in enumerate(ids.items()):
        size = TOPICS[name] * MIB // 170
        # Two topics keep longer than a week.
        older = 90 if index in (1, 2) else 0
        ages = [size * part for part in (*AGE_PARTS[:4], older, *AGE_PARTS[5:])]
        gone = [{"time": size * (18 + day * 5 % 7), "size": size * 2} for day in range(21)]
        if index == 0:
            gone[9]["purge"] = size * 12
        due = [size * (16 + day * 3 % 7) // (1 if day < 7 else 3) for day in range(24)]
        broken = {"code": "UNREAD_AT_RISK", "partition": "0", "group": "billing"}
        yield Told(
            f"default/{name}",
            topic_id,
            ages=ages,
            gone=gone,
            due=due,
            blocked=400 * MIB if index == 1 else 0,
            violations=[{**broken, "detail": "12 records before offset 400"}] if index == 0 else (),
        )


if __name__ == "__main__":
    main()
