"""The HTTP port and the log."""

import asyncio
import json
import logging

from dataplane.observability.http import CONNECTIONS_MAX, REQUEST_TIMEOUT_S
from dataplane.observability.telemetry import (
    JsonFormatter,
    Number,
    NumbersByCode,
    Telemetry,
)

TOKEN = "hr_user_k3j9x0a2bc_" + "s" * 43 + "_abcdef"


async def _get(port: int, request: str) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request.encode())
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer.decode()


async def _answers(*requests: str, ready: bool = True, warning: str = "") -> list[str]:
    telemetry = Telemetry(
        [
            Number("headrace_host_test", "Help.", lambda: 3),
            NumbersByCode("headrace_host_calls", "Help.", lambda: {"OK": 2}),
        ],
        engine_metrics=lambda: "engine_metric 1\n",
        ready=lambda: ready,
        warning=lambda: warning,
    )
    port = await telemetry.start("127.0.0.1", 0)
    answers = [await _get(port, request) for request in requests]
    await telemetry.close()
    return answers


def test_metrics_are_the_engine_s_and_the_host_s() -> None:
    (answer,) = asyncio.run(_answers("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"))
    assert answer.startswith("HTTP/1.1 200 OK")
    assert "engine_metric 1\n" in answer
    assert "headrace_host_test_total 3.0" in answer
    assert 'headrace_host_calls_total{code="OK"} 2.0' in answer


def test_health_and_readiness_are_told_apart() -> None:
    health, ready = asyncio.run(
        _answers("GET /healthz HTTP/1.1\r\n\r\n", "GET /readyz HTTP/1.1\r\n\r\n", ready=False)
    )
    assert " 200 " in health
    assert " 503 " in ready


def test_a_node_that_serves_names_what_needs_somebody() -> None:
    (answer,) = asyncio.run(_answers("GET /readyz HTTP/1.1\r\n\r\n", warning="DISK_SMALL: 1"))
    assert " 200 " in answer
    assert answer.endswith("ready, but DISK_SMALL: 1\n")


def test_what_is_not_served_is_refused() -> None:
    post, other, head, long = asyncio.run(
        _answers(
            "POST /metrics HTTP/1.1\r\n\r\n",
            "GET /secrets HTTP/1.1\r\n\r\n",
            "HEAD /healthz HTTP/1.1\r\n\r\n",
            "GET /" + "x" * 20000 + " HTTP/1.1\r\n\r\n",
        )
    )
    assert (" 405 " in post, " 404 " in other, head.endswith("\r\n\r\n"), long) == (
        True,
        True,
        True,
        "",
    )


def test_who_holds_on_without_a_word_gives_way_to_who_asks() -> None:
    paths = ("healthz", "metrics")

    async def run() -> list[str]:
        telemetry = Telemetry([], engine_metrics=str, ready=lambda: True)
        port = await telemetry.start("127.0.0.1", 0)
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(200)]
        async with asyncio.timeout(REQUEST_TIMEOUT_S / 2):
            answers = [await _get(port, f"GET /{path} HTTP/1.1\r\n\r\n") for path in paths]
        await telemetry.close()
        for _, writer in silent:
            writer.close()
        return answers

    health, metrics = asyncio.run(run())
    assert " 200 " in health
    assert f"headrace_http_evicted_total {200 + 1 - CONNECTIONS_MAX}.0" in metrics


def test_a_log_line_is_json_and_never_holds_a_token() -> None:
    record = logging.LogRecord(
        "dataplane.rpc", logging.WARNING, "", 0, "call of %s", (TOKEN,), None
    )
    line = json.loads(JsonFormatter().format(record))
    assert line["message"] == "call of hr_[redacted]"
    assert line["level"] == "warning"
