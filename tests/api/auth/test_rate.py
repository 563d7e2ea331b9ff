"""How often a key may ask: in bursts and in the long run, and every answer says what is left."""

import pytest
from fastapi import FastAPI
from hypothesis import given
from hypothesis import strategies as st

from api.auth import rate
from api.auth.rate import Limits, Policy
from api.http.errors import RateLimitedError
from tests.support.builders.control_plane import Service


def test_a_key_that_asks_too_often_is_told_how_long_to_wait(
    service: Service, application: FastAPI
) -> None:
    viewer = service.key("viewer")
    now = [0.0]
    application.state.limits = Limits(Policy(3, 2), clock=lambda: now[0])
    left = [service.client.get("/v1/topics", headers=viewer).headers["RateLimit"] for _ in range(3)]
    assert left == [f'"principal";r={tokens};t={t}' for tokens, t in ((2, 1), (1, 1), (0, 2))]
    refused = service.client.get("/v1/topics", headers=viewer)
    assert (refused.status_code, refused.json()["code"]) == (429, "RATE_LIMITED")
    assert refused.json()["retriable"] is True
    assert refused.headers["Retry-After"] == "1"
    assert refused.headers["RateLimit-Policy"] == '"principal";q=3;w=2'
    assert service.client.get("/v1/topics", headers=service.owner).status_code == 200
    now[0] += 0.5
    assert service.client.get("/v1/topics", headers=viewer).status_code == 200


def test_a_refused_request_changes_nothing(service: Service, application: FastAPI) -> None:
    application.state.limits = Limits(Policy(20, 1), clock=lambda: 0.0)
    body = {"kind": "usage"}
    first = service.client.post("/v1/report-runs", json=body, headers=service.owner)
    second = service.client.post("/v1/report-runs", json=body, headers=service.owner)
    assert (first.status_code, second.status_code) == (202, 429)
    assert second.headers["Retry-After"] == "20"
    application.state.limits = Limits(Policy(20, 1))
    assert len(service.get("/v1/report-runs")["items"]) == 1


def test_a_stranger_has_no_bucket_and_no_rate(service: Service) -> None:
    response = service.client.get("/v1/topics")
    assert response.status_code == 401
    assert "RateLimit" not in response.headers


@given(st.lists(st.tuples(st.floats(0, 5), st.integers(1, 4)), max_size=60))
def test_in_any_span_no_more_is_granted_than_the_burst_and_the_rate(
    asked: list[tuple[float, int]],
) -> None:
    now, granted = [0.0], 0
    limits = Limits(Policy(10, 3), clock=lambda: now[0])
    for pause, cost in asked:
        now[0] += pause
        granted += _granted(limits, cost)
        assert granted <= 10 + 3 * now[0] + 1e-6


def test_buckets_are_bounded_and_a_forgotten_one_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate, "PRINCIPALS_MAX", 2)
    limits = Limits(Policy(1, 1), clock=lambda: 0.0)
    for name in ("a", "b", "c"):
        limits.take(name, 1)
    limits.take("a", 1)
    with pytest.raises(RateLimitedError):
        limits.take("c", 1)


def _granted(limits: Limits, cost: int) -> int:
    try:
        limits.take("key_1", cost)
    except RateLimitedError:
        return 0
    return cost
