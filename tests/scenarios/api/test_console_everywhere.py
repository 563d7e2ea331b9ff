"""Every page, tab and dialog of the console: clean for axe in both themes, to the operator and to
whoever only reads bills, with markup shown as text wherever somebody else may have written it.

The tables name what there is; a route, a tab or a dialog that is not in them fails a test.
"""

import re
from collections.abc import Iterator
from typing import Final

import pytest
from playwright.sync_api import Page, expect

from tests.support.processes.browser import ROOT, Console, violations
from tests.support.stories.console_story import CANARY, Story, told
from tests.support.stories.scripted_reports import ScriptedReports

pytestmark = [pytest.mark.check, pytest.mark.alone]

SOURCE: Final = ROOT / "api" / "console" / "src"
THEMES: Final = ("Light", "Dark")
# Addresses of each route, and whether it shows words that somebody else wrote.
ROUTES: Final[dict[str, dict[str, bool]]] = {
    "/": {"/": False},
    "/topics": {"/topics": False},
    "/topics/$topicId": {
        "/topics/{topic}?tab=messages&from=earliest": True,
        "/topics/{topic}?tab=partitions": False,
        "/topics/{topic}?tab=settings": False,
        "/topics/tp_0": False,
    },
    "/streams": {"/streams": False},
    "/groups": {"/groups": False},
    "/groups/$name": {"/groups/past": False, "/groups/none": False},
    "/usage": {"/usage": False},
    "/invoices": {"/invoices": False},
    "/invoices/$invoiceId": {"/invoices/{invoice}": True, "/invoices/inv_0": False},
    "/retention": {
        "/retention?tab=overview": True,
        "/retention?tab=topics": True,
        "/retention?tab=violations": True,
        "/retention?tab=holds": True,
    },
    "/reports": {"/reports": False},
    "/reports/$runId": {
        "/reports/{run}": True,
        "/reports/{failed}": True,
        "/reports/run_0": False,
    },
    "/operations": {"/operations": True},
    "/nodes": {"/nodes": False},
    "/keys": {"/keys": True},
    # What no route knows.
    "*": {"/nowhere": False},
}
# Where a dialog of each source file opens, and by which button.
DIALOGS: Final[dict[str, tuple[str, str]]] = {
    "features/frame/Keys.tsx": ("/topics", "^Keyboard shortcuts$"),
    "features/keys/CreateKey.tsx": ("/keys", "^Create API key$"),
    "features/topics/CreateTopic.tsx": ("/topics", "^Create topic$"),
    "features/topics/Publish.tsx": ("/topics/{topic}", "^Publish message$"),
    "features/keys/RevokeKey.tsx": ("/keys", "^Revoke worker$"),
    "features/streams/CreateStream.tsx": ("/streams", "^Create stream$"),
    "features/retention/PlaceHold.tsx": ("/retention?tab=holds", "^Create legal hold$"),
    "features/retention/ReleaseHold.tsx": ("/retention?tab=holds", "^Release hold"),
    "ui/CopyAs.tsx": ("/groups", "^Copy as code$"),
    "ui/DeleteDialog.tsx": ("/streams", "^Delete default$"),
    "features/groups/GroupState.tsx": ("/groups", "^Explain the state of past"),
    "ui/ObjectState.tsx": ("/retention?tab=holds", "^Explain the state of hold"),
}
# Every dialog is made of one of these, and so are the pieces themselves.
DIALOG: Final = r"<(Dialog|FormDialog|ConfirmDialog|StateLabel)\b"
DIALOG_PIECES: Final = {"ui/ConfirmDialog.tsx", "ui/FormDialog.tsx", "ui/StateLabel.tsx"}


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    console = Console(tmp_path_factory.mktemp("everywhere"))
    jobs = ScriptedReports(console)
    with console:
        yield told(console, jobs)


def shown(page: Page, story: Story, address: str) -> None:
    """Goes there, and waits until nothing is loaded any more."""
    page.goto(f"{story.console.url}/console{address.format(**story.ids)}")
    page.get_by_role("heading", level=1).wait_for()
    expect(page.get_by_role("progressbar", name="Loading")).to_have_count(0)


def untouched(page: Page) -> bool:
    """Whether no text has become an element."""
    return page.locator("img[src=x], [onerror], main script").count() == 0


def test_every_route_tab_and_dialog_of_the_source_is_in_the_tables() -> None:
    main = (SOURCE / "main.tsx").read_text()
    assert set(re.findall(r'\bpath: "([^"]+)"', main)) == set(ROUTES) - {"*"}
    # A route is made by one of these, and each names its path.
    assert main.count("createRoute({") == len(ROUTES) - 1
    tabs = {
        "/topics/$topicId": (SOURCE / "features" / "topics" / "search.ts").read_text(),
        "/retention": (SOURCE / "features" / "retention" / "search.ts").read_text(),
    }
    for route, text in tabs.items():
        listed = re.search(r"TABS = \[([^\]]+)\]", text)
        assert listed is not None
        looked_at = re.findall(r"tab=([a-z]+)", " ".join(ROUTES[route]))
        assert re.findall(r'"([a-z]+)"', listed[1]) == looked_at
    texts = {
        path.relative_to(SOURCE).as_posix(): path.read_text() for path in SOURCE.rglob("*.tsx")
    }
    assert {name for name, text in texts.items() if "<Modal" in text} == {"ui/Dialog.tsx"}
    dialogs = {name for name, text in texts.items() if re.search(DIALOG, text)} - DIALOG_PIECES
    assert dialogs == set(DIALOGS)


@pytest.mark.parametrize("theme", THEMES)
def test_every_page_is_accessible_and_shows_markup_as_text(story: Story, theme: str) -> None:
    with story.console.page() as page:
        story.console.sign_in(page)
        page.get_by_role("button", name=theme, exact=True).click()
        for address, written in (each for some in ROUTES.values() for each in some.items()):
            shown(page, story, address)
            if written:
                expect(page.get_by_text(CANARY).filter(visible=True).first).to_be_visible()
            assert violations(page) == [], address
            assert untouched(page), address


@pytest.mark.parametrize("theme", THEMES)
def test_every_dialog_is_accessible_and_shows_markup_as_text(story: Story, theme: str) -> None:
    with story.console.page() as page:
        story.console.sign_in(page)
        page.get_by_role("button", name=theme, exact=True).click()
        for source, (address, button) in DIALOGS.items():
            shown(page, story, address)
            page.get_by_role("button", name=re.compile(button)).first.click()
            page.get_by_role("dialog").wait_for()
            expect(page.get_by_role("progressbar")).to_have_count(0)
            assert violations(page) == [], source
            assert untouched(page), source


def test_whoever_only_reads_bills_meets_accessible_pages_everywhere(story: Story) -> None:
    with story.console.page() as page:
        page.goto(f"{story.console.url}/console/usage")
        page.fill("#secret", story.reader)
        page.keyboard.press("Enter")
        # The refusals that it meets were seen in the other theme with the addresses of nothing, and
        # on a wide screen.
        page.get_by_role("button", name="Dark", exact=True).click()
        places = page.get_by_role("navigation", name="Pages").get_by_role("link")
        expect(places).to_have_text(["Home", "Usage and cost", "Invoices"])
        page.set_viewport_size({"width": 420, "height": 900})
        for address in (each for some in ROUTES.values() for each in some):
            shown(page, story, address)
            assert violations(page) == [], address
            assert untouched(page), address
            assert page.evaluate("document.documentElement.scrollWidth") <= 420, address


@pytest.mark.parametrize("theme", THEMES)
def test_the_door_is_accessible_also_to_whoever_was_refused(story: Story, theme: str) -> None:
    with story.console.page() as page:
        story.console.sign_in(page)
        page.get_by_role("button", name=theme, exact=True).click()
        page.get_by_role("button", name="Sign out").click()
        page.locator("#secret").wait_for()
        assert violations(page) == []
        page.fill("#secret", CANARY)
        page.keyboard.press("Enter")
        expect(page.get_by_text("SIGN_IN_FAILED")).to_be_visible()
        assert violations(page) == []
        assert untouched(page)


def test_a_message_and_a_line_of_an_invoice_are_opened_and_run_nothing(story: Story) -> None:
    with story.console.page() as page:
        story.console.sign_in(page)
        shown(page, story, "/topics/{topic}?tab=messages&from=earliest")
        page.get_by_role("button", name="0:0").click()
        message = page.get_by_role("region", name="Message")
        expect(message.locator("pre")).to_have_text(CANARY)
        # Its key, and the name and value of its header.
        assert message.get_by_text(CANARY).count() >= 4
        shown(page, story, "/invoices/{invoice}")
        page.get_by_role("button", name=CANARY).first.click()
        table = page.get_by_role("grid", name=f"{CANARY}, by topic")
        expect(table.get_by_role("link", name=CANARY)).to_be_visible()
        page.get_by_role("button", name="Details").first.click()
        expect(page.locator(".hr-pairs").get_by_text(CANARY).first).to_be_visible()
        assert violations(page) == []
        assert untouched(page)


def test_operations_of_console_sessions_are_shown_when_they_are_asked_for(story: Story) -> None:
    with story.console.page() as page:
        story.console.sign_in(page, "/console/operations")
        rows = page.get_by_role("grid", name="Operations").locator("tbody tr")
        expect(rows.filter(has_text="orders").first).to_be_visible()
        expect(rows.filter(has_text="console session")).to_have_count(0)
        page.locator("label[for=sessions]").click()
        expect(rows.filter(has_text="console session").first).to_be_visible()
