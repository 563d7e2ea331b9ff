"""What the node shows on its HTTP port: /metrics, /healthz, /readyz; and its log, one JSON object a
line.

Owns the metrics of the host, and the form of the log. The port serves no data and needs no key, so
it must show none: only counters, and whether the node is alive and ready. Logs carry ids, never
tokens: `redact` takes out whatever looks like one, even if a client put it into a name.
"""

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

from dataplane.observability.http import HttpServer, Response

_TOKEN: Final = re.compile(r"hr_[a-z]+_[a-z0-9]{10}_[A-Za-z0-9]{20,}(_[A-Za-z0-9]*)?")


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
    """The HTTP port. `ready`: whether the node serves; `warning`: what an operator must see to
    although it serves, or nothing."""

    def __init__(
        self,
        numbers: Iterable[Number | NumbersByCode],
        *,
        engine_metrics: Callable[[], str],
        ready: Callable[[], bool],
        warning: Callable[[], str] = lambda: "",
    ) -> None:
        self._server = HttpServer(self._get)
        evicted = Number(
            "headrace_http_evicted",
            "Connections of the HTTP port closed to make room for newer ones.",
            lambda: self._server.evicted,
        )
        self._registry = CollectorRegistry()
        self._registry.register(_HostCollector([*numbers, evicted]))
        self._engine_metrics = engine_metrics
        self._ready = ready
        self._warning = warning

    async def start(self, host: str, port: int) -> int:
        """Listen. Returns the port."""
        return await self._server.start(host, port)

    async def close(self) -> None:
        """Stop listening, and close every connection."""
        await self._server.close()

    def _get(self, path: bytes) -> Response:
        if path == b"/metrics":
            text = self._engine_metrics() + generate_latest(self._registry).decode()
            return Response(200, text)
        if path == b"/healthz":
            return Response(200, "alive\n")
        if path == b"/readyz":
            if self._ready():
                # Not a 503: a load balancer must not stop using a node that serves.
                warning = self._warning()
                return Response(200, f"ready, but {warning}\n" if warning else "ready\n")
            return Response(503, "not ready: starting or draining\n")
        return Response(404, "there are /metrics, /healthz and /readyz\n")


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
