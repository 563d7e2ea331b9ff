"""Retries: the same key is the same change, and everything of a change commits together."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import func, select

from api.db.tables.audit import AuditEvent, OutboxEvent
from api.db.tables.idempotency_keys import IdempotencyKey
from api.db.tables.topics import Topic
from api.db.tables.work import Work
from tests.support.builders.control_plane import Service

KEY = "0123456789abcdef"


def test_a_retry_gets_the_same_answer_and_makes_nothing_twice(service: Service) -> None:
    headers = {**service.owner, "Idempotency-Key": KEY}
    first = service.client.post("/v1/topics", json={"name": "orders"}, headers=headers)
    service.settle()
    second = service.client.post("/v1/topics", json={"name": "orders"}, headers=headers)
    assert second.status_code == first.status_code == 202
    assert second.json() == first.json()
    assert second.headers["Operation-Id"] == first.headers["Operation-Id"]
    assert second.headers["Idempotency-Replayed"] == "true"
    assert len(service.get("/v1/topics")["items"]) == 1


def test_a_retry_without_a_key_is_caught_by_the_name(service: Service) -> None:
    first = service.topic("orders")
    second = service.client.post("/v1/topics", json={"name": "orders"}, headers=service.owner)
    assert (second.status_code, second.json()["existing_id"]) == (409, first["id"])


def test_key_and_change_and_audit_and_outbox_and_work_commit_together(service: Service) -> None:
    tables = (Topic, IdempotencyKey, AuditEvent, OutboxEvent, Work)
    before = [_count(service, table) for table in tables]
    headers = {**service.owner, "Idempotency-Key": KEY}
    service.client.post("/v1/topics", json={"name": "orders"}, headers=headers)
    assert [_count(service, table) for table in tables] == [count + 1 for count in before]


def test_a_change_that_breaks_leaves_no_trace_and_the_key_free(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("power cut")

    headers = {**service.owner, "Idempotency-Key": KEY}
    before = [_count(service, table) for table in (Topic, IdempotencyKey, AuditEvent, OutboxEvent)]
    with monkeypatch.context() as patched:
        patched.setattr("api.topics.service.record_change", broken)
        answer = service.client.post("/v1/topics", json={"name": "orders"}, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (500, "INTERNAL")
    assert "power cut" not in answer.text
    after = [_count(service, table) for table in (Topic, IdempotencyKey, AuditEvent, OutboxEvent)]
    assert after == before
    again = service.client.post("/v1/topics", json={"name": "orders"}, headers=headers)
    assert again.status_code == 202
    assert "Idempotency-Replayed" not in again.headers


@pytest.mark.parametrize(
    ("path", "body"),
    [("/v1/topics", {"name": "other"}), ("/v1/topics?wait=0s", {"name": "orders"})],
)
def test_the_same_key_for_another_request_is_422(
    service: Service, path: str, body: dict[str, str]
) -> None:
    headers = {**service.owner, "Idempotency-Key": KEY}
    service.client.post("/v1/topics", json={"name": "orders"}, headers=headers)
    response = service.client.post(path, json=body, headers=headers)
    assert (response.status_code, response.json()["code"]) == (422, "IDEMPOTENCY_KEY_REUSED")


def test_a_key_belongs_to_its_path_its_method_and_its_principal(service: Service) -> None:
    headers = {**service.owner, "Idempotency-Key": KEY}
    second = {**service.key("owner"), "Idempotency-Key": KEY}
    service.client.post("/v1/topics", json={"name": "orders"}, headers=headers)
    stream = service.client.post("/v1/streams", json={"name": "orders"}, headers=headers)
    assert stream.status_code == 201
    other = service.client.post("/v1/topics", json={"name": "refunds"}, headers=second)
    assert other.status_code == 202


def test_the_order_of_members_does_not_make_another_request(service: Service) -> None:
    headers = {
        **service.owner,
        "Idempotency-Key": KEY,
        "Content-Type": "application/json",
    }
    first = service.client.post(
        "/v1/topics", content='{"name": "a", "display_name": "b"}', headers=headers
    )
    second = service.client.post(
        "/v1/topics", content='{"display_name":"b","name":"a"}', headers=headers
    )
    assert second.json() == first.json()


def test_a_secret_is_not_replayed(service: Service) -> None:
    headers = {**service.owner, "Idempotency-Key": f'"{KEY}"'}
    body = {"name": "k", "spec": {"role": "viewer"}}
    first = service.client.post("/v1/api-keys", json=body, headers=headers)
    second = service.client.post("/v1/api-keys", json=body, headers=headers)
    assert (second.status_code, second.json()["code"]) == (409, "SECRET_ALREADY_ISSUED")
    assert second.json()["existing_id"] == first.json()["id"]


def test_a_refusal_that_follows_from_state_is_replayed_and_a_bad_request_is_not(
    service: Service,
) -> None:
    service.topic("orders")
    headers = {**service.owner, "Idempotency-Key": KEY}
    first = service.client.post("/v1/topics", json={"name": "orders"}, headers=headers)
    second = service.client.post("/v1/topics", json={"name": "orders"}, headers=headers)
    assert first.status_code == second.status_code == 409
    assert second.headers["Idempotency-Replayed"] == "true"
    assert second.headers["content-type"] == "application/problem+json"
    other = {**service.owner, "Idempotency-Key": KEY + "x"}
    body = {"name": "payments", "spec": {"retention_ms": "1", "min_retention_ms": "2"}}
    assert service.client.post("/v1/topics", json=body, headers=other).status_code == 400
    body["spec"] = {}
    assert service.client.post("/v1/topics", json=body, headers=other).status_code == 202


def test_a_key_is_free_again_after_a_day(service: Service) -> None:
    headers = {**service.owner, "Idempotency-Key": KEY}
    service.client.post("/v1/topics", json={"name": "orders"}, headers=headers)
    service.clock.advance(24 * 3600 + 1)
    response = service.client.post("/v1/topics", json={"name": "refunds"}, headers=headers)
    assert response.status_code == 202
    assert _count(service, IdempotencyKey) == 1


def test_duplicates_at_the_same_time_make_one_topic(service: Service) -> None:
    headers = {**service.owner, "Idempotency-Key": KEY}
    with ThreadPoolExecutor(8) as pool:
        answers = list(
            pool.map(
                lambda _: service.client.post(
                    "/v1/topics", json={"name": "orders"}, headers=headers
                ),
                range(8),
            )
        )
    done = [answer for answer in answers if answer.status_code == 202]
    assert len({answer.json()["id"] for answer in done}) == 1
    # SQLite lets one wait for the other; PostgreSQL would hold a connection for each that waits.
    told = [answer for answer in answers if answer.status_code == 409]
    assert len(done) + len(told) == 8
    assert {answer.json()["code"] for answer in told} <= {"IDEMPOTENCY_KEY_IN_PROGRESS"}
    assert all(answer.headers["Retry-After"] == "1" for answer in told)


def test_a_malformed_key_is_refused(service: Service) -> None:
    headers = {**service.owner, "Idempotency-Key": "short"}
    response = service.client.post("/v1/topics", json={"name": "orders"}, headers=headers)
    assert response.status_code == 400
    assert response.json()["errors"][0]["pointer"] == "Idempotency-Key"


def _count(service: Service, table: type) -> int:
    with service.database.read() as session:
        return session.scalar(select(func.count()).select_from(table)) or 0
