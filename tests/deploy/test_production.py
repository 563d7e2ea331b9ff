"""The layout of production runs: either API and either worker may go, and nothing is lost."""

import os
import signal
import stat
from collections.abc import Iterator

import pytest
from pydantic import JsonValue as Json

import headrace
from tests.support.processes.platform import alive, wait_until
from tests.support.processes.production import Production

# Six processes start three times, beside whatever else the machine does.
pytestmark = [pytest.mark.check, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def production() -> Iterator[Production]:
    with Production() as running:
        yield running


def ready_topic(production: Production, number: int, name: str) -> None:
    """A topic that is wished over one API, and is Ready before the answer to a patient request."""
    body: Json = {"name": name, "spec": {"partitions": 2}}
    status, _, topic = production.ask(number, "POST", "/v1/topics", body)
    assert status == 202, topic

    def ready() -> bool:
        _, _, found = production.ask(number, "GET", f"/v1/topics/{topic['id']}")
        assert isinstance(found["status"], dict)
        conditions = found["status"]["conditions"]
        assert isinstance(conditions, list)
        return any(
            isinstance(each, dict) and (each["type"], each["status"]) == ("Ready", "True")
            for each in conditions
        )

    wait_until(ready, f"{name} is Ready")


def values(production: Production, name: str) -> list[bytes]:
    """Everything that a topic holds."""
    with connect(production) as client:
        return sorted(
            m.value or b"" for m in client.topic(name).consume(start="earliest", until="end")
        )


def connect(production: Production) -> headrace.Client:
    profile = production.profile()
    return headrace.connect(bootstrap=profile.bootstrap, key=profile.key, api_url=profile.api_url)


def test_a_topic_becomes_ready_over_either_api_and_gives_what_it_took(
    production: Production,
) -> None:
    for number in (1, 2):
        ready_topic(production, number, f"flow-{number}")
        with connect(production) as client:
            for value in (b"a", b"b"):
                client.topic(f"flow-{number}").send(value)
        assert values(production, f"flow-{number}") == [b"a", b"b"]


@pytest.mark.parametrize(("gone", "other"), [("api-1", 2), ("api-2", 1)])
def test_an_api_that_is_killed_leaves_the_other_and_comes_back(
    production: Production, gone: str, other: int
) -> None:
    pid = production.kill(gone)
    ready_topic(production, other, f"without-{gone}")
    production.wait_for_another(gone, pid)
    wait_until(lambda: answers(production, 3 - other), f"{gone} answers again")


@pytest.mark.parametrize("gone", ["worker-1", "worker-2"])
def test_a_worker_that_hangs_or_is_killed_leaves_the_other(
    production: Production, gone: str
) -> None:
    pid = production.pids()[gone]
    os.kill(pid, signal.SIGSTOP)
    try:
        ready_topic(production, 1, f"beside-{gone}")
    finally:
        os.kill(pid, signal.SIGCONT)
    assert production.kill(gone) == pid
    ready_topic(production, 2, f"without-{gone}")
    production.wait_for_another(gone, pid)


def test_a_session_of_the_console_holds_at_either_api(production: Production) -> None:
    password = production.said.rpartition("once: ")[2].split()[0]
    status, fields, _ = production.ask(1, "POST", "/console/session", {"secret": password})
    assert status == 200
    cookie = fields["set-cookie"].partition(";")[0]
    status, _, session = production.ask(2, "GET", "/console/session", Cookie=cookie)
    assert (status, session["role"]) == (200, "owner")
    token = str(session["csrf_token"])
    fields = {"Cookie": cookie, "X_CSRF_Token": token}
    status, _, _ = production.ask(2, "POST", "/v1/streams", {"name": "by-console"}, **fields)
    assert status == 201
    assert production.ask(2, "DELETE", "/console/session", **fields)[0] == 204
    assert production.ask(1, "GET", "/v1/streams", Cookie=cookie)[0] == 401


def test_a_database_that_is_killed_comes_back_under_the_same_processes(
    production: Production,
) -> None:
    wait_until(lambda: answers(production, 1) and answers(production, 2), "both answer")
    before = production.pids()
    gone = production.kill("postgres")
    production.wait_for_another("postgres", gone)
    wait_until(lambda: answers(production, 1) and answers(production, 2), "both answer again")
    ready_topic(production, 1, "after-the-database")
    after = production.pids()
    # A worker that was just starting may have ended and come again.
    for name in ("api-1", "api-2", "node-1"):
        assert after[name] == before[name], name


def test_what_holds_secrets_is_closed_to_others(production: Production) -> None:
    closed = ("headrace.toml", "node.key", "profile.toml", "postgres", "postgres/password")
    for name in closed:
        assert not stat.S_IMODE((production.folder / name).stat().st_mode) & 0o077, name


def test_all_ends_together_and_begins_again_with_what_it_had(production: Production) -> None:
    ready_topic(production, 1, "kept")
    with connect(production) as client:
        client.topic("kept").send(b"still here")
    key, pids = production.profile().key, production.pids()
    production.stop()
    assert not [name for name, pid in pids.items() if alive(pid)]
    production.start()
    assert "password" not in production.said
    assert production.profile().key == key
    assert values(production, "kept") == [b"still here"]
    os.kill(production.pids()["supervisor"], signal.SIGKILL)
    wait_until(lambda: not any(map(alive, production.pids().values())), "all end with their keeper")


def answers(production: Production, number: int) -> bool:
    """Whether an API says that it is ready."""
    try:
        return production.ask(number, "GET", "/readyz")[0] == 200
    except OSError:
        return False
