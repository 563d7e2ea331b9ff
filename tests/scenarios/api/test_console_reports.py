"""Reports, usage and cost in a real browser: the runs of a real worker, their job scripted."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from playwright.sync_api import Page, expect

from tests.support.processes.browser import Console, violations
from tests.support.stories.invoice_story import invoice_of
from tests.support.stories.retention_story import Told
from tests.support.stories.retention_story import text as moment
from tests.support.stories.scripted_reports import ScriptedReports

pytestmark = [pytest.mark.check, pytest.mark.alone]

CANARY = "<img src=x onerror=\"alert('canary')\"><script>alert('canary')</script>"
PAGE = f"<!doctype html><title>Usage</title><h1>The page</h1>{CANARY}"
GIB = 1 << 30
BYTE_PRICE = Decimal("0.00000000004656612873077392578125")
NOW = datetime.now(UTC)
MONTH = NOW.replace(day=1, hour=0, minute=0, second=0, microsecond=0)


@dataclass(frozen=True, slots=True)
class Bench:
    """A console, the jobs of its platform, and the ids of two topics and of who owns them."""

    console: Console
    jobs: ScriptedReports
    topics: dict[str, str]
    organization: str


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    console = Console(tmp_path_factory.mktemp("reports"))
    jobs = ScriptedReports(console)
    with console:
        made = {
            name: json.loads(console.platform.cli("topic", "create", name, "-o", "json").stdout)
            for name in ("orders", "returns")
        }
        topics = {name: str(topic["id"]) for name, topic in made.items()}
        yield Bench(console, jobs, topics, str(made["orders"]["organization_id"]))


def row(bench: Bench, topic: str, when: datetime, quantity: int, principal: str) -> dict[str, str]:
    start = when.replace(minute=0, second=0, microsecond=0)
    return {
        "organization": "default", "project": "default", "cluster": "local", "stream": "default",
        "topic": topic, "topic_id": bench.topics[topic], "principal": principal,
        "meter": "ingress_bytes", "unit": "B",
        "window_start": f"{start:%Y-%m-%dT%H:%M:%SZ}",
        "window_end": f"{start + timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}",
        "quantity": str(quantity), "unit_price": format(BYTE_PRICE, "f"), "currency": "EUR",
        "amount": format(round(quantity * BYTE_PRICE, 9), "f"), "price_book_version": "demo-1",
        "estimated": "false",
    }  # fmt: skip


def start(page: Page, report: str) -> None:
    """Starts a report and waits until its job does, on its own page."""
    page.get_by_role("link", name="Reports").first.click()
    page.get_by_role("button", name=f"Run {report} report").click()
    page.wait_for_url("**/reports/run_*")
    # The address changes first; until the page has come, the list is still shown.
    expect(page.get_by_role("heading", name="Progress")).to_be_visible()
    expect(page.get_by_text("Running", exact=True)).to_be_visible()


def test_a_run_is_started_fails_with_what_to_do_and_is_run_again(bench: Bench) -> None:
    with bench.console.page() as page:
        bench.console.sign_in(page, "/console/usage")
        expect(page.get_by_text("No usage report yet")).to_be_visible()
        assert violations(page) == []
        page.get_by_role("button", name="Run usage report").click()
        bench.jobs.fail(code="NODE_AWAY", message=f"No node: {CANARY}", hint="Start the node.")
        expect(page.get_by_text("The report failed. Nothing was published.")).to_be_visible()
        for words in (f"No node: {CANARY}", "Start the node.", "NODE_AWAY"):
            expect(page.get_by_text(words, exact=True)).to_be_visible()
        page.get_by_role("button", name="Job log").click()
        expect(page.locator("pre")).to_contain_text("canary")
        assert violations(page) == []
        page.get_by_role("button", name="Run again").click()
        expect(page.get_by_text("Running", exact=True)).to_be_visible()
        expect(page.get_by_text("Operation op_")).to_contain_text("running")
        bench.jobs.publish_usage([row(bench, "orders", NOW, GIB, "loader")], PAGE)
        expect(page.get_by_text("Succeeded", exact=True)).to_be_visible()
        expect(page.get_by_text("Operation op_")).to_contain_text("succeeded")
        with page.expect_popup() as opened:
            page.get_by_role("link", name="Open usage.html").click()
        shown = opened.value
        expect(shown.get_by_role("heading", name="The page")).to_be_visible()
        assert shown.evaluate("origin") == "null"
        assert shown.locator("img[src=x]").count() == 1
        shown.close()
        page.get_by_role("link", name="Reports").first.click()
        table = page.get_by_role("grid", name="Report runs")
        expect(table.get_by_text("NODE_AWAY")).to_be_visible()
        expect(table.locator("tbody tr")).to_have_count(2)


@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_usage_is_drawn_by_topic_and_said_in_the_table(bench: Bench, theme: str) -> None:
    days = [MONTH + timedelta(days=day) for day in range(NOW.day)]
    rows = [
        row(bench, name, day, (2 + index) * GIB + 1, CANARY)
        for index, name in enumerate(bench.topics)
        for day in days
    ]
    with bench.console.page() as page:
        bench.console.sign_in(page)
        page.get_by_role("button", name=theme).click()
        start(page, "usage")
        bench.jobs.publish_usage(rows, PAGE)
        expect(page.get_by_text("Succeeded", exact=True)).to_be_visible()
        assert violations(page) == []
        page.get_by_role("link", name="Usage and cost").click()
        total = f"{sum(Decimal(each['amount']) for each in rows):.2f} EUR"
        chart = page.get_by_role("img", name=f"Cost per day: {total} total. default/returns")
        expect(chart.locator("canvas")).to_be_visible()
        assert violations(page) == []
        page.get_by_role("group", name="Show Cost per day as").get_by_text("Table").click()
        table = page.get_by_role("grid", name="Cost per day")
        expect(table.locator("tbody tr")).to_have_count(len(days) + 1)
        expect(table.locator("tbody tr").last).to_contain_text(total)
        assert violations(page) == []


def test_a_small_cost_is_on_one_line_beside_the_quantities_with_units(bench: Bench) -> None:
    stored_row = row(bench, "orders", NOW, 1_000_000, "loader")
    stored_row |= {"meter": "stored_byte_seconds", "unit": "B-second", "quantity": "10800"}
    rows = [row(bench, "orders", NOW, 1_000_000, "loader"), stored_row]
    with bench.console.page() as page:
        bench.console.sign_in(page)
        start(page, "usage")
        bench.jobs.publish_usage(rows, PAGE)
        expect(page.get_by_text("Succeeded", exact=True)).to_be_visible()
        page.get_by_role("link", name="Usage and cost").click()
        figures = page.locator(".hr-figure dd")
        expect(figures).to_have_text([re.compile(r"0\.0\d{6,} EUR"), "976.6 KiB", "3 B·h"])
        heights = figures.evaluate_all("all => all.map(each => each.offsetHeight)")
        assert len(set(heights)) == 1
        assert violations(page) == []


def test_a_hold_is_placed_comes_into_force_and_is_released_by_typing_its_case(
    bench: Bench,
) -> None:
    with bench.console.page() as page:
        bench.console.sign_in(page, "/console/retention?tab=holds")
        expect(page.get_by_text("No legal holds")).to_be_visible()
        assert violations(page) == []
        page.get_by_role("button", name="Create legal hold").first.click()
        page.select_option("#hold-topic", label="default/orders")
        page.fill("#hold-case", "CASE <7>")
        page.fill("#hold-reason", CANARY)
        assert violations(page) == []
        page.get_by_role("button", name="Create", exact=True).click()
        holds = page.get_by_role("grid", name="Legal holds")
        expect(holds.get_by_text("Active", exact=True)).to_be_visible()
        expect(page.get_by_text(CANARY)).to_be_visible()
        page.get_by_role("button", name="Explain the state of hold CASE <7>").click()
        expect(page.get_by_role("dialog")).to_contain_text("CASE <7>")
        page.keyboard.press("Escape")
        refused = bench.console.platform.cli("topic", "delete", "orders", "--yes", check=False)
        assert b"TOPIC_HELD" in refused.stderr
        page.get_by_role("button", name="Release hold CASE <7>").click()
        release = page.get_by_role("button", name="Release", exact=True)
        expect(page.get_by_text("This cannot be undone")).to_be_visible()
        expect(release).to_be_disabled()
        assert violations(page) == []
        page.fill("#confirm", "CASE <7>")
        release.click()
        expect(page.get_by_text("No legal holds")).to_be_visible()
        page.get_by_role("button", name="Released", exact=True).click()
        expect(page.get_by_text("1 released hold")).to_be_visible()
        assert violations(page) == []


def stored(bench: Bench) -> list[Told]:
    """What a retention report says of two topics."""
    mib = 1 << 20
    return [
        Told(
            "default/orders",
            bench.topics["orders"],
            ages=[mib, 2 * mib, 4 * mib, 8 * mib, 0, 0, 0, 0, 0, 0],
            gone=[{"time": 3 * mib}, {"time": 2 * mib, "size": mib}],
            due=[mib, 2 * mib],
            blocked=5 * mib,
            violations=[
                {
                    "code": "UNREAD_AT_RISK",
                    "partition": "1",
                    "group": CANARY,
                    "detail": f"12 records {CANARY}",
                }
            ],
        ),
        Told("default/returns", bench.topics["returns"], ages=[mib, *[0] * 9]),
    ]


@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_retention_is_charted_and_listed_by_topic(bench: Bench, theme: str) -> None:
    told = stored(bench)
    with bench.console.page() as page:
        bench.console.sign_in(page)
        page.get_by_role("button", name=theme).click()
        start(page, "retention")
        bench.jobs.publish_retention(
            [each.entry(NOW) for each in told],
            [row for each in told for row in each.rows(NOW)],
            moment(NOW),
        )
        expect(page.get_by_text("Succeeded", exact=True)).to_be_visible()
        page.get_by_role("link", name="Retention", exact=True).click()
        ages = "Stored data by age: 16.0 MiB total. default/orders: 15.0 MiB"
        expect(page.get_by_role("img", name=ages).locator("canvas")).to_be_visible()
        gone = "Deleted data: 6.0 MiB total. By age: 5.0 MiB, By size: 1.0 MiB"
        expect(page.get_by_role("img", name=gone)).to_be_visible()
        due = "Upcoming deletions: 3.0 MiB total. default/orders: 3.0 MiB"
        expect(page.get_by_role("img", name=due)).to_be_visible()
        expect(page.get_by_text("Kept only by legal holds").locator("..")).to_contain_text(
            "5.0 MiB"
        )
        assert violations(page) == []
        page.get_by_role("tab", name="Topics and policies").click()
        shown = page.get_by_role("region", name="default/orders")
        expect(shown).to_contain_text("source: topic, default")
        expect(shown.get_by_role("grid")).to_contain_text("7 d, 7 d, 7 d")
        assert violations(page) == []
        page.get_by_role("tab", name="Violations").click()
        expect(page.get_by_text(f"12 records {CANARY}")).to_be_visible()
        expect(page.get_by_text("due for deletion within the next 24 hours")).to_be_visible()
        assert violations(page) == []


def test_an_invoice_is_followed_from_its_total_down_to_offsets(bench: Bench) -> None:
    rows = [
        row(bench, name, MONTH + timedelta(hours=hour), (2 + index) * GIB, CANARY)
        for index, name in enumerate(bench.topics)
        for hour in range(3)
    ]
    last_month = (MONTH - timedelta(days=1)).replace(day=1)
    invoices = [
        invoice_of(bench.organization, rows, MONTH, NOW),
        invoice_of(bench.organization, rows, last_month, MONTH - timedelta(days=1), red="log"),
    ]
    with bench.console.page() as page:
        bench.console.sign_in(page)
        start(page, "usage")
        bench.jobs.publish_usage(rows, PAGE, invoices)
        expect(page.get_by_text("Succeeded", exact=True)).to_be_visible()
        page.get_by_role("link", name="Invoices").click()
        table = page.get_by_role("grid", name="Invoices")
        expect(table.locator("tbody tr")).to_have_count(2)
        expect(page.get_by_text("1 of 2 blocked")).to_be_visible()
        assert violations(page) == []
        page.get_by_role("link", name=f"{last_month:%B %Y}").click()
        expect(page.get_by_text("Not reconciled: 1 of 6 checks failed").first).to_be_visible()
        expect(page.get_by_text("The log has 2 bytes more than were billed.")).to_be_visible()
        page.get_by_role("button", name="Top-up to the monthly minimum").click()
        expect(page.get_by_text("This line is not metered")).to_be_visible()
        page.get_by_role("link", name="Invoices").first.click()
        page.get_by_role("link", name=f"{MONTH:%B %Y}").click()
        expect(page.get_by_text("Reconciled: 6 of 6").first).to_be_visible()
        page.get_by_role("button", name="Ingress, stored batch bytes").click()
        chart = page.get_by_role("img", name="Ingress per day: 15.0 GiB total. default/returns")
        expect(chart.locator("canvas")).to_be_visible()
        page.get_by_role("group", name="Show Ingress per day as").get_by_text("Table").click()
        page.get_by_role("button", name=f"{MONTH:%Y-%m-%d}").click()
        expect(page.get_by_role("grid", name=f"Ingress on {MONTH:%Y-%m-%d}")).to_contain_text(
            f"{MONTH:%Y-%m-%d} 02:00"
        )
        offsets = page.get_by_role("grid", name="Log offsets")
        expect(offsets).to_contain_text("deleted by retention")
        expect(offsets).to_contain_text("500 to 599")
        assert violations(page) == []


def test_whoever_only_reads_bills_sees_them_and_starts_nothing(bench: Bench) -> None:
    key = ("key", "create", "accountant", "--role", "billing-viewer", "-o", "json")
    secret = json.loads(bench.console.platform.cli(*key).stdout)["secret"]
    rows = [row(bench, "orders", MONTH, GIB, "loader")]
    with bench.console.page() as page:
        bench.console.sign_in(page)
        start(page, "usage")
        bench.jobs.publish_usage(rows, PAGE, [invoice_of(bench.organization, rows, MONTH, NOW)])
        expect(page.get_by_text("Succeeded", exact=True)).to_be_visible()
    with bench.console.page() as page:
        page.goto(f"{bench.console.url}/console/usage")
        page.fill("#secret", secret)
        page.keyboard.press("Enter")
        expect(page.get_by_role("img", name="Cost per day: 0.05 EUR total")).to_be_visible()
        expect(page.get_by_role("link", name="Download CSV")).to_have_count(0)
        expect(page.get_by_role("link", name="Reports")).to_have_count(0)
        page.get_by_role("link", name="Invoices").click()
        page.get_by_role("link", name=f"{MONTH:%B %Y}").click()
        with page.expect_download() as saved:
            page.get_by_role("link", name="Download JSON").click()
        assert saved.value.suggested_filename.startswith(f"invoice-{bench.organization}-")
        page.goto(f"{bench.console.url}/console/retention")
        expect(page.get_by_text("This requires the permission retention:read")).to_be_visible()
        assert violations(page) == []
