"""The console's door: who gets in, what a session can and cannot do, what guards the browser."""

from contextlib import ExitStack
from pathlib import Path

import pytest
from argon2 import Type
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import select

from api.api_keys.service import SESSION_PREFIX
from api.app import SIGN_INS
from api.auth.cookies import COOKIE, csrf_token
from api.auth.rate import Limits
from api.db.tables import Base
from api.http.errors import InvalidRequestError, RateLimitedError
from api.messages.service import wanted_partitions
from api.messages.tail import TAILS_MAX, TAILS_OF_ORGANIZATION_MAX, Tails, positions
from api.node.messages import Place
from api.sessions import service as console
from api.sessions.service import HASHER, new_password
from tests.support.builders.control_plane import Service


def application(service: Service) -> FastAPI:
    app = service.client.app
    assert isinstance(app, FastAPI)
    return app


@pytest.fixture
def browser(service: Service) -> TestClient:
    """Another client of the same control plane, without any key, that nobody has guessed at."""
    application(service).state.sign_ins = Limits(SIGN_INS, clock=lambda: 0.0)
    return TestClient(application(service))


@pytest.fixture
def password(service: Service) -> str:
    with service.database.write() as session:
        made = new_password(session)
    assert made is not None
    return made


def sign_in(browser: TestClient, secret: str) -> dict[str, str]:
    response = browser.post("/console/session", json={"secret": secret})
    assert response.status_code == 200, response.text
    return {"X-CSRF-Token": response.json()["csrf_token"]}


def test_the_password_is_made_once_and_only_its_hash_is_kept(
    service: Service, password: str
) -> None:
    with service.database.write() as session:
        assert new_password(session) is None
        for table in Base.metadata.sorted_tables:
            assert password not in str(session.execute(select(table)).all())
    if service.database.is_sqlite:
        file = Path(str(service.database.writer.url.database))
        assert password.encode() not in b"".join(
            path.read_bytes() for path in file.parent.glob("control.db*")
        )


def test_who_guesses_offline_pays_for_every_guess() -> None:
    """What is imported here is the one of production; the tests hash with a cheaper one."""
    assert HASHER.memory_cost >= 64 * 1024, "KiB"
    assert (HASHER.type, HASHER.time_cost >= 3) == (Type.ID, True)


def test_the_password_opens_a_session_of_the_owner(browser: TestClient, password: str) -> None:
    csrf = sign_in(browser, password)
    who = browser.get("/console/session").json()
    assert (who["role"], who["operator"]) == ("owner", True)
    assert {"topics:read", "nodes:read", "keys:create"} <= set(who["permissions"])
    assert browser.post("/v1/streams", json={"name": "billing"}, headers=csrf).status_code == 201


def test_a_wrong_password_is_refused_with_what_to_do_and_sets_no_cookie(
    browser: TestClient, password: str
) -> None:
    response = browser.post("/console/session", json={"secret": password + "x"})
    assert (response.status_code, response.json()["code"]) == (401, "SIGN_IN_FAILED")
    assert "headrace up" in response.json()["hint"]
    assert "set-cookie" not in response.headers


def test_who_guesses_passwords_must_wait(browser: TestClient, password: str) -> None:
    codes = [
        browser.post("/console/session", json={"secret": f"guess-{number}"}).status_code
        for number in range(12)
    ]
    assert codes[0] == 401
    assert codes[-1] == 429


def test_a_key_opens_the_console_with_its_own_rights(service: Service, browser: TestClient) -> None:
    viewer = service.post("/v1/api-keys", {"name": "v", "spec": {"role": "viewer"}})["secret"]
    csrf = sign_in(browser, viewer)
    assert browser.get("/v1/topics").status_code == 200
    refused = browser.post("/v1/topics", json={"name": "orders"}, headers=csrf)
    assert (refused.status_code, refused.json()["code"]) == (403, "PERMISSION_DENIED")


@pytest.mark.parametrize("token", ["", "0" * 40, csrf_token("hr_user_another")])
def test_a_write_by_cookie_without_its_csrf_token_is_refused(
    browser: TestClient, password: str, token: str
) -> None:
    sign_in(browser, password)
    response = browser.post("/v1/streams", json={"name": "b"}, headers={"X-CSRF-Token": token})
    assert (response.status_code, response.json()["code"]) == (403, "CSRF_TOKEN_INVALID")
    assert browser.delete("/console/session").status_code == 403


def test_signing_out_ends_the_session_for_whoever_kept_its_cookie(
    service: Service, browser: TestClient, password: str
) -> None:
    csrf = sign_in(browser, password)
    kept = str(browser.cookies[COOKIE])
    assert browser.delete("/console/session", headers=csrf).status_code == 204
    assert browser.get("/console/session").json() is None
    again = TestClient(application(service), cookies={COOKIE: kept})
    assert again.get("/v1/topics").status_code == 401


def test_signing_out_leaves_a_key_of_the_users_own(service: Service, browser: TestClient) -> None:
    secret = service.post("/v1/api-keys", {"name": "v", "spec": {"role": "viewer"}})["secret"]
    csrf = sign_in(browser, secret)
    browser.delete("/console/session", headers=csrf)
    headers = {"Authorization": f"Bearer {secret}"}
    assert service.client.get("/v1/topics", headers=headers).status_code == 200


def test_a_session_is_no_lasting_owner(
    service: Service, browser: TestClient, password: str
) -> None:
    csrf = sign_in(browser, password)
    owner = service.first.owner_key_id
    response = browser.delete(f"/v1/api-keys/{owner}", headers=csrf)
    assert (response.status_code, response.json()["code"]) == (409, "LAST_OWNER")


def test_an_owner_cannot_revoke_the_session_of_the_operators_console(
    service: Service, browser: TestClient, password: str
) -> None:
    csrf = sign_in(browser, password)
    owner = service.key("owner")
    found = service.get("/v1/api-keys?sessions=true")["items"]
    (session,) = [each for each in found if each["name"].startswith(SESSION_PREFIX)]
    path = f"/v1/api-keys/{session['id']}"
    assert service.client.delete(path, headers=owner).status_code == 403
    assert browser.get("/v1/topics").status_code == 200
    assert browser.delete("/console/session", headers=csrf).status_code == 204


def test_no_script_reads_the_cookie_and_no_other_site_sends_it(
    browser: TestClient, password: str
) -> None:
    response = browser.post("/console/session", json={"secret": password})
    cookie = response.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie


def test_the_pages_may_load_and_ask_their_own_origin_only(browser: TestClient) -> None:
    policy = browser.get("/console/").headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert "script-src" not in browser.get("/healthz").headers["content-security-policy"]


def test_a_browser_at_the_root_goes_to_the_console_and_a_program_does_not(
    browser: TestClient,
) -> None:
    page = browser.get("/", headers={"Accept": "text/html"}, follow_redirects=False)
    assert (page.status_code, page.headers["location"]) == (307, "/console/")
    assert browser.get("/").json()["console"] == "/console/"


def test_a_partition_that_is_not_there_and_too_many_at_once_are_refused() -> None:
    assert wanted_partitions(None, 3) == [0, 1, 2]
    assert wanted_partitions(2, 3) == [2]
    with pytest.raises(InvalidRequestError, match="partition 3 does not exist"):
        wanted_partitions(3, 3)
    with pytest.raises(InvalidRequestError, match="at most 64"):
        wanted_partitions(None, 65)


def test_a_place_that_cannot_be_read_counts_as_none() -> None:
    assert positions("0:41,1:17") == {0: 41, 1: 17}
    assert positions("0:x,:1,2,-1:4,1:99999999999999999999") == {}
    assert positions(None) == {}


def test_one_tail_too_many_is_refused_and_one_that_ended_makes_room() -> None:
    tails = Tails()
    with ExitStack() as stack:
        for number in range(TAILS_MAX):
            stack.enter_context(tails.seat(f"org_{number % 2}"))
        with pytest.raises(RateLimitedError, match="64 readers follow"):
            tails.seat("org_3")
    tails.seat("org_3")


def test_no_organization_takes_all_tails() -> None:
    tails = Tails()
    with ExitStack() as stack:
        for _ in range(TAILS_OF_ORGANIZATION_MAX):
            stack.enter_context(tails.seat("org_1"))
        with pytest.raises(RateLimitedError, match="of the organization"):
            tails.seat("org_1")
        tails.seat("org_2")
    tails.seat("org_1")


def test_a_place_does_not_show_the_key() -> None:
    assert "secret" not in repr(Place("127.0.0.1:1", "default", "default/a", 1, "Bearer secret"))


def test_a_new_password_replaces_the_one_before(
    service: Service, browser: TestClient, password: str
) -> None:
    with service.database.write() as session:
        another = new_password(session, replace=True)
    assert another is not None
    refused = browser.post("/console/session", json={"secret": password})
    assert refused.json()["code"] == "SIGN_IN_FAILED"
    sign_in(browser, another)


def test_keys_of_sessions_are_not_listed_and_expired_ones_are_revoked_at_the_next_sign_in(
    service: Service, browser: TestClient, password: str
) -> None:
    sign_in(browser, password)
    assert [each["name"] for each in service.get("/v1/api-keys")["items"]] == ["owner"]
    service.clock.advance(13 * 3600)
    browser.cookies.clear()
    sign_in(browser, password)
    keys = service.get("/v1/api-keys?sessions=true")["items"]
    assert ["revoked_at" in each for each in keys if each["name"] != "owner"] == [True, False]


def test_operations_of_the_keys_of_sessions_are_listed_only_where_they_are_asked_for(
    service: Service, browser: TestClient, password: str
) -> None:
    service.topic("orders")
    before = service.get("/v1/operations")["items"]
    sign_in(browser, password)
    assert service.get("/v1/operations")["items"] == before
    (made,) = service.get("/v1/operations?sessions=true")["items"][len(before) :]
    assert (made["kind"], made["target"]["kind"]) == ("create_key", "key")
    assert service.get(f"/v1/operations?target_id={made['target']['id']}")["items"] == [made]


def test_only_the_operators_owner_key_replaces_the_password(
    service: Service, browser: TestClient, password: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "ENDED_AT_ONCE", 1)
    others = [TestClient(application(service)) for _ in range(2)]
    for other in others:
        sign_in(other, password)
    csrf = sign_in(browser, password)
    place = "/console/password"
    assert browser.post(place, headers=csrf).status_code == 401
    assert browser.post(place, headers=service.key("owner")).status_code == 403
    made = browser.post(place, headers=service.owner).json()["password"]
    for each in (browser, *others):
        assert each.get("/console/session").json() is None, "the session has ended"
    sign_in(browser, made)
