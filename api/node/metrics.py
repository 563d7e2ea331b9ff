"""What operators read at /metrics of the API, in the text format of Prometheus.

The path needs no key, as /readyz, so it shows counts alone: no address, no name. Refuses to wait:
every figure is in memory, and is read in the event loop.
"""

from collections.abc import Iterable
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from api.node.pool import NodePool

MEDIA_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


class _NodeCalls(Collector):
    def __init__(self, pool: NodePool) -> None:
        self._pool = pool

    def collect(self) -> Iterable[Metric]:
        """The calls to nodes."""
        yield GaugeMetricFamily(
            "headrace_api_node_calls",
            "Calls to nodes that a request is waiting for.",
            value=self._pool.limit.under_way,
        )
        refused = CounterMetricFamily(
            "headrace_api_node_calls_refused",
            "Calls to nodes refused at once. busy: as many calls to the node as allowed were under "
            "way. circuit_open: the node did not answer lately.",
            labels=["reason"],
        )
        refused.add_metric(["busy"], self._pool.limit.refused)
        refused.add_metric(["circuit_open"], self._pool.circuit_refusals)
        yield refused


def metrics_text(pool: NodePool) -> str:
    """The metrics of this process."""
    registry = CollectorRegistry()
    registry.register(_NodeCalls(pool))
    return generate_latest(registry).decode()
