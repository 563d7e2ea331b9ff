"""The edge: ids, headers, limits, and every error in one shape."""

import re

import pytest

from api.http.resource import TOPIC_NAME_PATTERN
from tests.support.builders.control_plane import Body, Service

LONGEST = next(n for n in range(1, 300) if not re.match(TOPIC_NAME_PATTERN, "x" * (n + 1)))
MEMBERS = {"type", "title", "status", "detail", "instance", "code", "request_id", "retriable"}


def test_every_answer_carries_an_id_and_the_security_headers(service: Service) -> None:
    for path in ("/v1/topics", "/nowhere", "/healthz"):
        response = service.client.get(path)
        assert response.headers["X-Request-Id"].startswith("req_")
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers["Cache-Control"] == "no-store"
    kept = service.client.get("/healthz", headers={"X-Request-Id": "trace-12345"})
    assert kept.headers["X-Request-Id"] == "trace-12345"


def test_health_and_readiness_need_no_key(service: Service) -> None:
    assert service.client.get("/healthz").json() == {"status": "ok"}
    assert service.client.get("/readyz").json() == {"status": "ready"}


@pytest.mark.parametrize(
    ("method", "path", "options", "status", "code"),
    [
        ("GET", "/v2/topics", {}, 404, "PATH_NOT_FOUND"),
        ("PUT", "/v1/topics", {"json": {}}, 405, "METHOD_NOT_ALLOWED"),
        ("POST", "/v1/topics", {"json": {"nam": "x"}}, 400, "INVALID_REQUEST"),
        ("POST", "/v1/topics", {"content": b"{"}, 400, "INVALID_REQUEST"),
        ("GET", "/v1/topics?nmae=x", {}, 400, "INVALID_REQUEST"),
        ("GET", "/v1/topics?page_size=-1", {}, 400, "INVALID_REQUEST"),
        ("GET", "/v1/topics/tp_0", {}, 404, "NOT_FOUND"),
        ("POST", "/v1/topics", {"content": b"x" * (1 << 20) + b"y"}, 413, "PAYLOAD_TOO_LARGE"),
    ],
)
def test_an_error_has_one_shape_and_its_status(
    service: Service,
    method: str,
    path: str,
    options: Body,
    status: int,
    code: str,
) -> None:
    headers = {**service.owner, "Content-Type": "application/json"}
    response = service.client.request(method, path, headers=headers, **options)
    assert (response.status_code, response.json()["code"]) == (status, code)
    assert response.headers["content-type"] == "application/problem+json"
    assert response.json().keys() >= MEMBERS
    assert response.json()["request_id"] == response.headers["X-Request-Id"]
    if code in ("PATH_NOT_FOUND", "METHOD_NOT_ALLOWED"):
        assert response.json()["hint"]


def test_a_body_that_is_not_json_is_415(service: Service) -> None:
    headers = {**service.owner, "Content-Type": "text/plain"}
    response = service.client.post("/v1/topics", content="name=x", headers=headers)
    assert (response.status_code, response.json()["code"]) == (415, "UNSUPPORTED_MEDIA_TYPE")


def test_a_body_without_length_is_cut_off_at_the_limit(service: Service) -> None:
    headers = {**service.owner, "Content-Type": "application/json"}
    chunks = iter([b"[" + b"1," * 300_000] * 3)
    response = service.client.post("/v1/topics", content=chunks, headers=headers)
    assert (response.status_code, response.json()["code"]) == (413, "PAYLOAD_TOO_LARGE")


def test_a_fault_of_a_nested_member_is_pointed_at(service: Service) -> None:
    body = {"name": "orders", "spec": {"partitions": 0, "codec": "gzip"}}
    response = service.client.post("/v1/topics", json=body, headers=service.owner)
    pointers = {each["pointer"] for each in response.json()["errors"]}
    assert pointers == {"#/spec/partitions", "#/spec/codec"}


def test_authorization_comes_before_validation(service: Service) -> None:
    viewer = service.key("viewer")
    response = service.client.post("/v1/topics", json={"nonsense": 1}, headers=viewer)
    assert response.status_code == 403


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (
            {"name": "a/b"},
            (
                "name: letters, digits, . _ and -, beginning with a letter or a digit, "
                f"{LONGEST} characters at most."
            ),
        ),
        ({"name": "a", "spec": {"partition": 3}}, "spec.partition: unknown member."),
        (
            {"name": "a", "spec": {"partitions": 0}},
            "spec.partitions: must be greater than or equal to 1.",
        ),
    ],
)
def test_a_fault_of_the_schema_is_one_readable_line(
    service: Service, body: Body, detail: str
) -> None:
    response = service.client.post("/v1/topics", json=body, headers=service.owner)
    assert response.json()["detail"] == detail
    assert "^" not in response.text


@pytest.mark.parametrize("moment", ["yesterday", "2026-13-01", "2026-01-31T12:00:00"])
def test_a_time_that_is_none_is_told_how_one_looks(service: Service, moment: str) -> None:
    response = service.client.get(f"/v1/usage?from={moment}", headers=service.owner)
    assert response.json()["detail"].startswith("from: must be a time")
    assert "such as 2026-01-31T12:00:00Z." in response.json()["detail"]


def test_a_choice_that_was_tried_is_no_place_in_the_request(service: Service) -> None:
    body = {"name": "orders", "spec": {"retention_ms": "soon"}}
    response = service.client.post("/v1/topics", json=body, headers=service.owner)
    (fault,) = response.json()["errors"]
    assert fault["pointer"] == "#/spec/retention_ms"
    assert fault["detail"] == "must be a whole number or 'unlimited'"


@pytest.mark.parametrize(
    ("content", "byte"), [(b'{"name": x', 9), ('{"ü": x'.encode(), 7), (b"{", 1)]
)
def test_a_body_that_is_not_json_is_told_at_which_byte(
    service: Service, content: bytes, byte: int
) -> None:
    headers = {**service.owner, "Content-Type": "application/json"}
    response = service.client.post("/v1/topics", content=content, headers=headers)
    assert response.status_code == 400
    assert response.json()["detail"] == f"The body is not JSON at byte {byte}."
    assert response.json()["errors"][0]["pointer"] == "#"


def test_the_root_says_where_the_contract_and_the_health_are(service: Service) -> None:
    response = service.client.get("/")
    assert response.status_code == 200
    assert response.json() == {
        "service": "Headrace control plane",
        "console": "/console/",
        "openapi": "/openapi.json",
        "health": "/healthz",
    }
    refused = service.client.post("/", headers=service.owner)
    assert (refused.status_code, refused.headers["Allow"]) == (405, "GET")
