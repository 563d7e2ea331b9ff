"""One call after the other: what a unary Produce costs the node, beside grpcio servers.

One run, rounds interleaved: 100 B records, authenticated, 64 in flight from load.c; the node has
each record synced before it acknowledges, the baselines do nothing (baseline.py). The baseline that
counts is the cheaper of the two. CPU is the server process's own, all threads, user and system.
"""

import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.performance.load import STREAM_IN_FLIGHT, load, produce_message
from tests.performance.machine import ROOT, Figures
from tests.support.processes.platform import Platform

ROUNDS = 5
SIZE = 100
KINDS = ("sync", "aio")


@contextmanager
def baseline(kind: str, key: str) -> Iterator[tuple[int, str]]:
    """A server of its own process; yields its id and port."""
    command = [sys.executable, str(ROOT / "tests/performance/baseline.py"), kind, key]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield process.pid, process.stdout.readline().strip()
        process.communicate()


def per_call(figures: Figures) -> float:
    """CPU-microseconds of the server for one answer."""
    return figures["cpu_us"] / figures["calls"]


def bench_rpc(platform: Platform, topic: str) -> tuple[Figures, dict[str, list[float]]]:
    """The figures, and every round of what they are medians of."""
    profile = platform.profile()
    message = produce_message(profile, topic, SIZE)
    node, port = platform.pids()[-1], profile.bootstrap.rpartition(":")[2]
    unary: list[Figures] = []
    stream: list[Figures] = []
    others: dict[str, list[Figures]] = {kind: [] for kind in KINDS}
    with baseline("sync", profile.key) as sync, baseline("aio", profile.key) as aio:
        for _ in range(ROUNDS):
            unary.append(load(node, port, profile.key, "Produce", message, how="unary"))
            for kind, (pid, at) in zip(KINDS, (sync, aio), strict=True):
                found = load(pid, at, profile.key, "Produce", message, how="unary")
                others[kind].append(found)
            stream.append(
                load(
                    node,
                    port,
                    profile.key,
                    "ProduceStream",
                    message,
                    how="stream",
                    amount=STREAM_IN_FLIGHT,
                )
            )
    rounds = {
        "cpu_us_per_call": [per_call(found) for found in unary],
        "stream_cpu_us_per_message": [per_call(found) for found in stream],
        "unary_rps": [found["per_second"] for found in unary],
        "stream_mps": [found["per_second"] for found in stream],
        "p50_us": [found["p50_us"] for found in unary],
        "p99_us": [found["p99_us"] for found in unary],
    }
    for kind in KINDS:
        rounds[f"{kind}_cpu_us_per_call"] = [per_call(found) for found in others[kind]]
        rounds[f"{kind}_rps"] = [found["per_second"] for found in others[kind]]
    medians = {name: statistics.median(values) for name, values in rounds.items()}
    cheaper = min(KINDS, key=lambda kind: medians[f"{kind}_cpu_us_per_call"])
    cost = medians[f"{cheaper}_cpu_us_per_call"]
    figures = {
        "cpu_us_per_call": medians["cpu_us_per_call"],
        "baseline_cpu_us_per_call": cost,
        "cpu_ratio": cost / medians["cpu_us_per_call"],
        "unary_rps": medians["unary_rps"],
        "baseline_rps": medians[f"{cheaper}_rps"],
        "stream_mps": medians["stream_mps"],
        "p50_us": medians["p50_us"],
        "p99_us": medians["p99_us"],
    }
    return figures, rounds
