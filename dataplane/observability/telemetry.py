"""The node's HTTP port: /metrics, /healthz, /readyz; and its log, one JSON object a line.

Owns a small HTTP/1.1 server over asyncio streams: GET and HEAD, one request a connection,
everything bounded. It serves no data and needs no key, so it must show none: only counters, and
whether the node is alive and ready. Logs carry ids, never tokens: `redact` takes out whatever looks
like one, even if a client put it into a name.
"""

import asyncio
import json
import logging
import re
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

REQUEST_BYTES_MAX: Final = 8192
REQUEST_TIMEOUT_S: Final = 5.0
CONNECTIONS_MAX: Final = 64

_TOKEN: Final = re.compile(r"hr_[a-z]+_[a-z0-9]{10}_[A-Za-z0-9]{20,}(_[A-Za-z0-9]*)?")

log = logging.getLogger("dataplane.telemetry")


@dataclass(frozen=True, slots=True)
class Number:
    """One figure of the host: a counter if it only rises, else a gauge."""

    name: str
    help: str
    read: Callable[[], float]
    rises: bool = True


@dataclass(frozen=True, slots=True)
class NumbersByCode:
    """One counter per code, or per whatever `label` names."""

    name: str
    help: str
    read: Callable[[], dict[str, int]]
    label: str = "code"


class _HostCollector(Collector):
    def __init__(self, numbers: Iterable[Number | NumbersByCode]) -> None:
        self._numbers = tuple(numbers)

    def collect(self) -> Iterable[Metric]:
        for number in self._numbers:
            if isinstance(number, NumbersByCode):
                family = CounterMetricFamily(number.name, number.help, labels=[number.label])
                for code, count in sorted(number.read().items()):
                    family.add_metric([code], count)
                yield family
            elif number.rises:
                yield CounterMetricFamily(number.name, number.help, value=number.read())
            else:
                yield GaugeMetricFamily(number.name, number.help, value=number.read())


class Telemetry:
    """The HTTP server. `ready` says whether the node serves; `warning` what somebody must see to
    although it does, or nothing."""

    def __init__(
        self,
        numbers: Iterable[Number | NumbersByCode],
        *,
        engine_metrics: Callable[[], str],
        ready: Callable[[], bool],
        warning: Callable[[], str] = lambda: "",
    ) -> None:
        self._evicted = 0
        evicted = Number(
            "headrace_http_evicted",
            "Connections of the HTTP port closed to make room for newer ones.",
            lambda: self._evicted,
        )
        self._registry = CollectorRegistry()
        self._registry.register(_HostCollector([*numbers, evicted]))
        self._engine_metrics = engine_metrics
        self._ready = ready
        self._warning = warning
        self._server: asyncio.Server | None = None
        self._open: dict[asyncio.StreamWriter, asyncio.Task[None] | None] = {}

    async def start(self, host: str, port: int) -> int:
        """Listen. Returns the port."""
        self._server = await asyncio.start_server(self._serve, host, port, limit=REQUEST_BYTES_MAX)
        return int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Stop listening, and end whoever is still there."""
        if self._server is None:
            return
        self._server.close()
        serving = [task for task in self._open.values() if task is not None]
        for writer in self._open:
            writer.transport.abort()
        await asyncio.gather(*serving, return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open[writer] = asyncio.current_task()
        if len(self._open) > CONNECTIONS_MAX:
            # Who watches whether the node is alive must get through, whoever else holds on.
            oldest = next(iter(self._open))
            del self._open[oldest]
            oldest.transport.abort()
            self._evicted += 1
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT_S):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(self._answer(head))
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # A client that does not speak or listen gets nothing.
        finally:
            self._open.pop(writer, None)
            writer.close()

    def _answer(self, head: bytes) -> bytes:
        words = head.split(b"\r\n", 1)[0].split(b" ")
        if len(words) != 3 or words[0] not in (b"GET", b"HEAD"):
            return _response(405, "only GET is served here\n", head_only=False)
        head_only = words[0] == b"HEAD"
        path = words[1].split(b"?", 1)[0]
        if path == b"/metrics":
            text = self._engine_metrics() + generate_latest(self._registry).decode()
            return _response(200, text, head_only=head_only)
        if path == b"/healthz":
            return _response(200, "alive\n", head_only=head_only)
        if path == b"/readyz":
            if self._ready():
                # Not a 503: to take a node that serves out of its service would help nobody.
                warning = self._warning()
                text = f"ready, but {warning}\n" if warning else "ready\n"
                return _response(200, text, head_only=head_only)
            return _response(503, "not ready: starting or draining\n", head_only=head_only)
        return _response(404, "there are /metrics, /healthz and /readyz\n", head_only=head_only)


_REASONS: Final = {
    200: "OK",
    404: "Not Found",
    405: "Method Not Allowed",
    503: "Service Unavailable",
}


def _response(status: int, text: str, *, head_only: bool) -> bytes:
    body = text.encode()
    head = (
        f"HTTP/1.1 {status} {_REASONS[status]}\r\n"
        "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode() + (b"" if head_only else body)


def redact(text: str) -> str:
    """The text without anything that looks like a token."""
    return _TOKEN.sub("hr_[redacted]", text)


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time (UTC), level, logger, message, and the story of an exception."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of one record."""
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line = {
            "time": f"{moment}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": redact(record.getMessage()),
        }
        if record.exc_info:
            line["exception"] = redact(self.formatException(record.exc_info))
        return json.dumps(line)


def configure_logging(level: str) -> None:
    """Log to stderr as JSON; stdout is for the ready line."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
