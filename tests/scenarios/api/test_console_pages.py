"""The pages of what runs: home, groups, nodes, operations and keys, on a platform with its demo."""

import json
import os
import re
import signal
from collections.abc import Iterator

import pytest
from httpx2 import Client
from playwright.sync_api import Page, expect

from headrace.version import VERSION
from tests.support.processes.browser import Console, violations
from tests.support.processes.platform import alive, wait_until

pytestmark = [pytest.mark.check, pytest.mark.alone]

CANARY = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    with Console(tmp_path_factory.mktemp("pages"), "--demo") as running:
        key = {"Authorization": f"Bearer {running.platform.profile().key}"}
        with Client(base_url=running.url, headers=key) as rest:
            wait_until(
                lambda: [each["state"] for each in groups(rest)] == ["STABLE", "STABLE"],
                "both groups of the demo read",
            )
        yield running


def groups(rest: Client) -> list[dict[str, str]]:
    found: list[dict[str, str]] = rest.get("/v1/groups?lag=true").json().get("items", [])
    return found


def copied(page: Page) -> str:
    return str(page.evaluate("navigator.clipboard.readText()"))


def figure(page: Page, term: str) -> str:
    return page.locator(".hr-figure", has_text=term).locator("dd").first.inner_text()


def test_home_is_alive_and_every_number_leads_to_its_page(console: Console) -> None:
    with console.page() as page:
        console.sign_in(page, "/console/")
        expect(page.locator(".hr-figure", has_text="Ingress").first).to_contain_text("KiB/s")
        expect(page.locator(".hr-figure", has_text="Egress").first).to_contain_text("KiB/s")
        expect(page.locator(".hr-figure", has_text="Cost to date")).to_contain_text("unknown")
        assert re.fullmatch(r"[0-9.]+ MiB|[0-9.]+ KiB", figure(page, "Stored"))
        page.get_by_role("img", name=re.compile("Throughput over time")).wait_for()
        page.get_by_role("button", name="Show as table").click()
        expect(
            page.get_by_role("grid", name="Throughput").locator("tbody tr").first
        ).to_contain_text("KiB/s")
        links = page.locator(".hr-figure a").evaluate_all("all => all.map(a => a.pathname)")
        assert all(link.startswith("/console/") for link in links)
        page.locator(".hr-figure", has_text="Highest lag").get_by_role("link").click()
        expect(page.get_by_role("heading", level=1)).to_have_text(re.compile("delays|departures"))
        page.go_back()
        page.get_by_role("link", name="default/flights").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("default/flights")


def test_a_group_shows_its_members_and_how_far_each_partition_is_read(console: Console) -> None:
    console.platform.cli("consume", "flights", "-g", "past", "--from", "start", "-n", "5")
    with console.page() as page:
        console.sign_in(page, "/console/groups")
        rows = page.get_by_role("grid", name="Groups").locator("tbody tr")
        expect(rows).to_have_count(3)
        # Nobody reads for it now: its lag is that of what it has committed in.
        expect(rows.filter(has_text="past")).to_contain_text("Empty")
        expect(rows.filter(has_text="past")).not_to_contain_text("unknown")
        page.keyboard.press("/")
        page.keyboard.type("none such")
        expect(page.get_by_text("No groups match your search")).to_be_visible()
        page.get_by_role("button", name="Clear search").click()
        page.keyboard.press("/")
        page.keyboard.type("delays")
        expect(rows).to_have_count(1)
        page.get_by_role("link", name="delays").click()
        expect(page.get_by_role("grid", name="Members")).to_contain_text("delays-1")
        positions = page.get_by_role("grid", name="Lag by partition").locator("tbody tr")
        expect(positions).to_have_count(4)
        page.get_by_role("button", name="Explain the state of delays").click()
        expect(page.get_by_role("dialog")).to_contain_text("Every partition is assigned")
        page.keyboard.press("Escape")
        page.get_by_role("button", name="Copy as code").click()
        page.get_by_role("button", name="Copy CLI").click()
        assert copied(page) == "headrace group lag delays"
        page.goto(f"{console.url}/console/groups/past")
        expect(page.get_by_text("No active consumers")).to_be_visible()
        expect(page.get_by_role("grid", name="Lag by partition")).to_contain_text("No consumer")
        page.goto(f"{console.url}/console/groups/none")
        expect(page.get_by_text("GROUP_NOT_FOUND")).to_be_visible()


def test_a_key_is_made_shown_once_and_revoked(console: Console) -> None:
    with console.page() as page:
        console.sign_in(page, "/console/keys")
        page.get_by_role("button", name="Create API key").click()
        page.fill("#key-name", "worker")
        page.fill("#key-description", CANARY)
        page.select_option("#key-role", "viewer")
        page.get_by_role("button", name="Create", exact=True).click()
        page.get_by_role("button", name="Copy Secret").click()
        secret = copied(page)
        assert secret.startswith("hr_user_")
        assert violations(page) == []
        page.get_by_role("button", name="I have copied the secret").click()
        row = page.get_by_role("row", name=re.compile("worker"))
        expect(row).to_contain_text("Active")
        expect(row).to_contain_text(CANARY)
        assert page.locator("img[src=x], main script").count() == 0
        assert secret not in page.content()
        stored = "JSON.stringify([{...localStorage}, {...sessionStorage}, location.href])"
        assert secret not in str(page.evaluate(stored))
        assert page.get_by_text("console.").count() == 0
        key = {"Authorization": f"Bearer {secret}"}
        with Client(base_url=console.url, headers=key) as rest:
            assert rest.get("/v1/topics").status_code == 200
            row.get_by_role("button", name="Revoke worker").click()
            revoke = page.get_by_role("button", name="Revoke", exact=True)
            expect(revoke).to_be_disabled()
            page.fill("#confirm", "worker")
            assert violations(page) == []
            revoke.click()
            expect(page.get_by_role("dialog")).to_have_count(0)
            expect(row).to_have_count(0)
            assert rest.get("/v1/topics").status_code == 401
        page.locator("label[for=past]").click()
        expect(row).to_contain_text("Revoked")


def test_operations_lead_to_their_objects_and_say_why(console: Console) -> None:
    with console.page() as page:
        console.sign_in(page, "/console/operations")
        row = page.get_by_role("row", name=re.compile("create topic")).filter(has_text="flights")
        expect(row).to_contain_text("Succeeded")
        row.get_by_role("button", name=re.compile("^Explain the state of create topic")).click()
        expect(page.get_by_role("dialog")).to_contain_text("UTC")
        page.keyboard.press("Escape")
        row.get_by_role("link", name="default/flights").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("default/flights")
        page.goto(f"{console.url}/console/operations")
        page.get_by_role("button", name="Failed", exact=True).click()
        expect(page.get_by_text("No failed operations")).to_be_visible()


def test_nodes_say_what_they_are_and_who_may_not_see_them_is_told(console: Console) -> None:
    made = console.platform.cli("key", "create", "onlooker", "--role", "viewer", "-o", "json")
    secret = str(json.loads(made.stdout)["secret"])
    with console.page() as page:
        console.sign_in(page, "/console/nodes")
        row = page.get_by_role("grid", name="Nodes").locator("tbody tr")
        expect(row).to_contain_text("local/node-1")
        expect(row).to_contain_text(VERSION)
        expect(row).to_contain_text("Ready")
    with console.page() as page:
        page.goto(f"{console.url}/console/nodes")
        page.fill("#secret", secret)
        page.keyboard.press("Enter")
        expect(page.get_by_text("PERMISSION_DENIED")).to_be_visible()
        assert page.get_by_role("link", name="Nodes").count() == 0
        page.get_by_role("link", name="Home").click()
        expect(page.locator(".hr-figure", has_text="Ingress").first).to_contain_text("KiB/s")
        # What the nodes give to readers is of all organizations.
        assert page.locator(".hr-figure", has_text="Egress").count() == 0
        # What a reader may not do is not offered.
        page.get_by_role("link", name="Streams").click()
        expect(page.get_by_role("grid", name="Streams")).to_contain_text("default")
        expect(page.get_by_role("button", name=re.compile("Create|Delete"))).to_have_count(0)
        page.get_by_role("link", name="Topics").click()
        expect(page.get_by_role("link", name="default/flights")).to_be_visible()
        expect(page.get_by_role("button", name="Create topic")).to_have_count(0)
        page.get_by_role("link", name="default/flights").click()
        expect(page.get_by_role("button", name="Refresh")).to_be_visible()
        expect(page.get_by_role("button", name=re.compile("Publish|Delete"))).to_have_count(0)
        page.get_by_role("tab", name="Settings").click()
        expect(page.get_by_text("This key cannot change topics")).to_be_visible()
        page.get_by_role("link", name="Retention").click()
        page.get_by_role("tab", name="Legal holds").click()
        expect(page.get_by_text("No legal holds")).to_be_visible()
        expect(page.get_by_role("button", name="Create legal hold")).to_have_count(0)


def test_an_owner_is_not_offered_to_revoke_the_key_of_an_operator(console: Console) -> None:
    made = console.platform.cli("key", "create", "boss", "--role", "owner", "-o", "json").stdout
    with console.page() as page:
        page.goto(f"{console.url}/console/keys")
        page.fill("#secret", json.loads(made)["secret"])
        page.keyboard.press("Enter")
        rows = page.get_by_role("grid", name="API keys").locator("tbody tr")
        expect(
            rows.filter(has_text="boss").get_by_role("button", name="Revoke boss")
        ).to_be_visible()
        operators = rows.filter(has_text="owner, operator")
        expect(operators.first).to_be_visible()
        expect(operators.get_by_role("button", name=re.compile("^Revoke"))).to_have_count(0)


def test_a_hold_asks_for_its_topic(console: Console) -> None:
    with console.page() as page:
        console.sign_in(page, "/console/retention?tab=holds")
        page.get_by_role("button", name="Create legal hold").first.click()
        page.get_by_role("option", name="default/flights").wait_for(state="attached")
        page.fill("#hold-case", "CASE-7")
        page.fill("#hold-reason", "requested by the court")
        expect(page.locator("#hold-topic")).to_have_value("")
        create = page.get_by_role("button", name="Create", exact=True)
        expect(create).to_be_disabled()
        page.select_option("#hold-topic", label="default/flights")
        expect(create).to_be_enabled()


SEEN = """state => {
  Object.defineProperty(document, "visibilityState", { configurable: true, get: () => state });
  document.dispatchEvent(new Event("visibilitychange", { bubbles: true }));
}"""


def test_a_hidden_tab_reads_no_topics(console: Console) -> None:
    with console.page() as page:
        page.clock.install()
        console.sign_in(page)
        expect(page.get_by_role("link", name="default/flights")).to_be_visible()
        page.evaluate(SEEN, "hidden")
        asked: list[str] = []
        page.on("request", lambda sent: asked.append(sent.url))
        page.clock.run_for(60_000)
        assert asked == []
        with page.expect_request("**/v1/topics?live=true*"):
            page.evaluate(SEEN, "visible")
            page.clock.run_for(6_000)


def test_operations_read_the_names_of_objects_once(console: Console) -> None:
    with console.page() as page:
        page.clock.install()
        console.sign_in(page, "/console/operations")
        rows = page.get_by_role("grid", name="Operations").locator("tbody tr")
        expect(rows.get_by_role("link", name="default/flights").first).to_be_visible()
        asked: list[str] = []
        page.on("request", lambda sent: asked.append(sent.url))
        with page.expect_request("**/v1/operations*"):
            page.clock.run_for(60_000)
        assert not [url for url in asked if "/v1/topics" in url]


@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_what_is_alive_and_a_dialog_over_a_dialog_are_accessible(
    console: Console, theme: str
) -> None:
    with console.page() as page:
        console.sign_in(page, "/console/")
        page.get_by_role("button", name=theme, exact=True).click()
        page.wait_for_selector(".u-legend")
        assert violations(page) == []
        for path, button in (("streams", "Create stream"), ("keys", "Create API key")):
            page.goto(f"{console.url}/console/{path}")
            page.get_by_role("button", name=button).click()
            page.get_by_role("dialog").wait_for()
            assert violations(page) == [], button
            page.get_by_role("button", name="Copy as code").click()
            page.get_by_role("button", name="Copy CLI").wait_for()
            assert violations(page) == [], f"{button}, as code"


def test_another_organization_finds_nothing_of_the_groups_and_the_present(
    console: Console,
) -> None:
    key = {"Authorization": f"Bearer {console.platform.profile().key}"}
    with Client(base_url=console.url, headers=key) as rest:
        page = rest.get("/v1/groups?page_size=1").json()
        rest_of = rest.get(f"/v1/groups?page_size=1&page_token={page['next_page_token']}").json()
        assert [each["name"] for each in page["items"] + rest_of["items"]][:2] == [
            "delays",
            "departures",
        ]
        organization = rest.post("/v1/orgs", json={"name": "acme"}).json()["id"]
        body = {"name": "theirs", "organization_id": organization, "spec": {"role": "owner"}}
        theirs = rest.post("/v1/api-keys", json=body).json()["secret"]
    with Client(base_url=console.url, headers={"Authorization": f"Bearer {theirs}"}) as rest:
        project = rest.get("/v1/projects").json()["items"][0]["id"]
        wait_until(lambda: rest.get("/v1/groups").status_code == 200, "the node knows the key")
        assert rest.get("/v1/groups").json()["items"] == []
        assert rest.get("/v1/groups/delays").json()["code"] == "GROUP_NOT_FOUND"
        assert rest.get(f"/v1/groups?project_id={project}x").status_code == 404
        assert rest.get(f"/v1/groups?page_token={page['next_page_token']}").status_code == 400
        live = rest.get("/v1/live?looks=2").text
        assert ('"topics":0' in live, "flights" in live, "delays" in live) == (True, False, False)


def test_the_demo_is_started_again_and_the_assets_come_compressed(console: Console) -> None:
    pids = console.platform.pids()
    assert len(pids) == 4
    os.kill(pids[3], signal.SIGKILL)
    wait_until(
        lambda: console.platform.pids()[3:] not in ([], [pids[3]]), "the demo is started again"
    )
    with Client(base_url=console.url) as rest:
        script = re.search(r'src="(/console/assets/[^"]+\.js)"', rest.get("/console/").text)
        assert script is not None
        squeezed = rest.get(script[1], headers={"Accept-Encoding": "gzip"})
        plain = rest.get(script[1], headers={"Accept-Encoding": "identity"})
        assert squeezed.headers["Content-Encoding"] == "gzip"
        assert int(squeezed.headers["Content-Length"]) < 250 * 1024
        assert squeezed.headers["Vary"] == "Accept-Encoding"
        assert squeezed.text == plain.text


def test_a_new_password_ends_the_sessions_and_the_password_before(console: Console) -> None:
    made = console.platform.cli("key", "create", "next", "--role", "viewer", "-o", "json")
    with console.page() as page:
        console.sign_in(page, "/console/keys")
        expect(page.get_by_role("grid", name="API keys")).to_contain_text("owner")
        options = ("--dir", str(console.platform.data), "--new-password")
        said = console.platform.cli("up", *options).stderr.decode()
        page.locator("#secret").wait_for()
        page.fill("#secret", console.password)
        page.keyboard.press("Enter")
        expect(page.get_by_text("SIGN_IN_FAILED")).to_be_visible()
        # The next one at this browser sees nothing of what the one before was shown.
        page.fill("#secret", str(json.loads(made.stdout)["secret"]))
        page.keyboard.press("Enter")
        expect(page.get_by_text("PERMISSION_DENIED")).to_be_visible()
        expect(page.get_by_role("grid", name="API keys")).to_have_count(0)
        page.get_by_role("button", name="Sign out").click()
        page.locator("#secret").wait_for()
        console.password = said.partition("shown only once: ")[2].split()[0]
        console.sign_in(page)


def test_whoever_follows_holds_no_end_up_and_the_demo_ends_with_the_service(
    console: Console,
) -> None:
    pids = console.platform.pids()
    assert len(pids) == 4
    key = {"Authorization": f"Bearer {console.platform.profile().key}"}
    with (
        Client(base_url=console.url, headers=key, timeout=120) as rest,
        rest.stream("GET", "/v1/live") as live,
    ):
        assert next(live.iter_text())
        console.platform.cli("down", "--dir", str(console.platform.data))
    assert not any(map(alive, pids))
    assert "graceful shutdown exceeded" not in (console.platform.data / "logs/api.log").read_text()
