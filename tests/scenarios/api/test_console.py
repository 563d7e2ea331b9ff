"""The console in a real browser on a real platform: every page and flow, both themes."""

import base64
import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.support.processes.browser import Console, violations
from tests.support.processes.platform import wait_until

pytestmark = pytest.mark.alone

CANARY = "<img src=x onerror=\"alert('canary')\"><script>alert('canary')</script>"


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    with Console(tmp_path_factory.mktemp("console")) as running:
        yield running


def create(page: Page, name: str) -> None:
    page.get_by_role("button", name="Create topic").first.click()
    page.fill("#name", name)
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(f"default/{name}")


def publish(page: Page, value: str, *, key: str = "", headers: str = "") -> None:
    page.get_by_role("button", name="Publish message").click()
    page.fill("#key", key)
    page.fill("#value", value)
    page.fill("#headers", headers)
    # Twice, as people do: it is stored once.
    page.get_by_role("button", name="Publish", exact=True).dblclick()
    page.get_by_text("Message published").wait_for()
    page.get_by_role("button", name="Close", exact=True).last.click()


def test_a_wrong_password_teaches_and_the_right_one_opens(console: Console) -> None:
    with console.page() as page:
        page.goto(console.url)
        page.fill("#secret", "wrong")
        page.keyboard.press("Enter")
        expect(page.get_by_text("SIGN_IN_FAILED")).to_be_visible()
        page.fill("#secret", console.password)
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text("Home")
        page.get_by_role("button", name="Sign out").click()
        page.locator("#secret").wait_for()


@pytest.mark.check
def test_a_topic_is_made_written_read_and_deleted(console: Console) -> None:
    with console.page() as page:
        console.sign_in(page)
        create(page, "orders")
        expect(page.get_by_text("No messages found")).to_be_visible()
        publish(page, '{"id": 123456789012345678901}', key="cust-42", headers="trace: abc")
        page.get_by_role("button", name="0:0").click()
        shown = page.get_by_role("region", name="Message")
        expect(shown.locator("pre")).to_have_text(re.compile("123456789012345678901"))
        expect(shown.get_by_text("abc")).to_be_visible()
        page.get_by_role("button", name="hex").click()
        expect(shown.locator("pre")).to_have_text(re.compile("^00000000  7b 22 69 64"))
        page.get_by_role("button", name="Copy link").click()
        link = str(page.evaluate("navigator.clipboard.readText()"))
        page.goto(link)
        expect(page.get_by_role("heading", name="Partition 0, offset 0")).to_be_visible()
        page.get_by_role("button", name="Delete topic").click()
        expect(page.get_by_text("deletes 1 record (")).to_be_visible()
        remove = page.get_by_role("button", name="Delete", exact=True)
        expect(remove).to_be_disabled()
        page.fill("#confirm", "default/orders")
        remove.click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Topics")


@pytest.mark.check
def test_a_live_tail_shows_what_comes_and_stands_still_while_paused(console: Console) -> None:
    with console.page() as page:
        console.sign_in(page)
        create(page, "tailed")
        page.get_by_label("Live").check()
        page.get_by_text("Streaming").wait_for()
        rows = page.locator("table[aria-label=Messages] tbody tr")
        console.platform.cli("produce", "tailed", stdin=b"one\ntwo\n")
        expect(rows).to_have_count(2)
        page.get_by_role("button", name="Pause").click()
        console.platform.cli("produce", "tailed", stdin=b"three\n")
        expect(page.get_by_text("3 messages received")).to_be_visible()
        expect(rows).to_have_count(2)
        page.get_by_role("button", name="Resume").click()
        expect(rows).to_have_count(3)


@pytest.mark.check
def test_a_change_that_may_lose_data_is_reviewed_before_it_is_saved(console: Console) -> None:
    with console.page() as page:
        console.sign_in(page)
        create(page, "settings")
        console.platform.cli("produce", "settings", stdin=b"one\ntwo\n")
        page.get_by_role("tab", name="Settings").click()
        goes = page.get_by_text("2 records in 1 partition would be deleted")

        def reviewed() -> bool:
            for retention in ("2s", "1s"):
                page.fill("#set-retention", retention)
            page.get_by_role("button", name="Review changes").click()
            page.get_by_text("Before you save").wait_for()
            return goes.is_visible()

        wait_until(reviewed, "both records are a second old", 120)
        page.fill("#set-retention", "1h")
        page.get_by_role("button", name="Review changes").click()
        expect(page.get_by_text("No stored records would be deleted.")).to_be_visible()
        expect(page.get_by_text("They cannot be recovered")).to_be_visible()
        page.get_by_role("button", name="Save").click()
        expect(page.locator(".hr-figure dd", has_text="1h")).to_be_visible()
        page.fill("#set-retention", "30m")
        page.get_by_role("button", name="Review changes").click()
        expect(page.locator(".hr-pairs")).to_have_text("Retention1h → 30m")
        console.platform.cli("topic", "alter", "settings", "--set", "retention_ms=7200000")
        # What somebody else has changed since is not set back.
        expect(page.get_by_text("This topic has changed since")).to_be_visible()
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_text("PRECONDITION_FAILED")).to_be_visible()
        page.get_by_role("button", name="Reload").click()
        expect(page.locator("#set-retention")).to_have_value("2h")


@pytest.mark.check
def test_a_topic_is_paused_and_resumed(console: Console) -> None:
    with console.page() as page:
        console.sign_in(page)
        create(page, "resting")
        page.get_by_role("tab", name="Settings").click()
        for switch, state in (("check", "Paused"), ("uncheck", "Ready")):
            getattr(page.get_by_label("Paused", exact=True), switch)()
            page.get_by_role("button", name="Review changes").click()
            page.get_by_role("button", name="Save").click()
            expect(page.locator(".pf-v6-c-toolbar").get_by_text(state, exact=True)).to_be_visible()


@pytest.mark.check
def test_what_is_stored_is_shown_and_never_run(console: Console) -> None:
    with console.page() as page:
        console.sign_in(page)
        create(page, "canaries")
        publish(page, CANARY, key=CANARY, headers=f"{CANARY.replace(':', '')}: {CANARY}")
        page.get_by_role("button", name="0:0").click()
        shown = page.get_by_role("region", name="Message")
        expect(shown.locator("pre")).to_have_text(CANARY)
        assert page.locator("img[src=x], main script").count() == 0


@pytest.mark.check
@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_every_page_is_accessible_in_both_themes(console: Console, theme: str) -> None:
    with console.page() as page:
        console.sign_in(page)
        page.get_by_role("button", name=theme).click()
        assert violations(page) == []
        create(page, f"access-{theme.lower()}")
        publish(page, base64.b64encode(b"x" * 100).decode(), key="k")
        page.get_by_role("button", name="0:0").click()
        assert violations(page) == []
        for tab in ("Partitions", "Settings"):
            page.get_by_role("tab", name=tab).click()
            page.get_by_role("tab", name=tab, selected=True).wait_for()
            assert violations(page) == []
        page.get_by_role("button", name=re.compile("^Explain the state")).click()
        page.get_by_text("the next attempt").wait_for()
        assert violations(page) == []
        page.keyboard.press("Escape")
        page.get_by_role("button", name="Delete topic").click()
        page.locator("#confirm").wait_for()
        assert violations(page) == []


@pytest.mark.check
def test_a_write_whose_answer_breaks_off_is_no_success(console: Console) -> None:
    with console.page() as page:
        console.sign_in(page, "/console/streams")
        page.route(
            "**/v1/streams",
            lambda sent: (
                sent.fulfill(status=201, body='{"id": "st')
                if sent.request.method == "POST"
                else sent.continue_()
            ),
        )
        page.get_by_role("button", name="Create stream").click()
        page.fill("#stream-name", "billing")
        page.get_by_role("button", name="Create", exact=True).click()
        expect(page.get_by_role("dialog")).to_contain_text("ANSWER_CUT_OFF")


@pytest.mark.check
def test_the_keyboard_reaches_pages_search_and_its_own_sheet(console: Console) -> None:
    with console.page() as page:
        console.sign_in(page)
        page.keyboard.press("g")
        page.keyboard.press("s")
        expect(page.get_by_role("heading", level=1)).to_have_text("Streams")
        page.keyboard.press("g")
        page.keyboard.press("t")
        expect(page.get_by_role("heading", level=1)).to_have_text("Topics")
        page.keyboard.press("/")
        expect(page.get_by_label("Search topics")).to_be_focused()
        page.keyboard.press("Tab")
        page.keyboard.press("?")
        expect(page.get_by_role("dialog")).to_be_visible()


@pytest.mark.check
def test_copy_as_code_gives_what_the_form_says(console: Console) -> None:
    with console.page() as page:
        console.sign_in(page)
        page.get_by_role("button", name="Create topic").first.click()
        page.fill("#name", "copied")
        page.get_by_role("button", name="Copy as code").click()
        # Over plain HTTP from another machine a browser has no such clipboard.
        page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(Error()) }")
        page.get_by_role("button", name="Copy CLI").click()
        expect(page.get_by_role("button", name="Copied CLI")).to_be_visible()
        line = str(page.evaluate("navigator.clipboard.readText()"))
        assert line == "headrace topic create default/copied --partitions 1 --retention 7d"
        console.platform.cli(*line.split()[1:])
        described = console.platform.cli("topic", "describe", "copied", "-o", "json").stdout
        assert b'"604800000"' in described
        topic = json.loads(described)["id"]
        page.goto(f"{console.url}/console/topics/{topic}?from=earliest")
        page.select_option("[aria-label='Start position']", "time")
        page.get_by_role("button", name="Copy as code").click()
        page.get_by_role("button", name="Copy CLI").click()
        line = str(page.evaluate("navigator.clipboard.readText()"))
        assert console.platform.cli(*line.split()[1:]).stdout == b""
