"""`make bench [WHAT=name]`: benchmarks of the real processes; build/bench/NAME.json each.

    produce    many records through one Python client: server CPU a record, records a second
    consume    the same records out again
    send       one record a call, one in flight: what a synchronous caller feels
    unary      one batch of one record a call, 64 in flight, from a client in C
    stream     the same on one bidirectional stream

The first figure is the node's CPU-microseconds a record, from /proc: it does not depend on how busy
the machine is. Rates stand beside the machine's own limits, measured in the same run by limit.c.
Medians of five rounds, with the spread. Refuses to judge: bounds are tests' business.
"""

import json
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import grpc  # noqa: E402 - found by the path above, like the rest

import headrace  # noqa: E402
from headrace import codec  # noqa: E402
from headrace.wire import stream_pb2 as wire  # noqa: E402
from headrace.wire import stream_pb2_grpc as rpc  # noqa: E402
from tests.performance.machine import (  # noqa: E402
    FOLDER,
    Figures,
    built,
    cpu_seconds,
    machine_limits,
    said,
)
from tests.support.platform import Platform, Profile  # noqa: E402

ROUNDS = 5
RECORDS = 200_000
SENDS = 1_000
SIZES = (100, 1024)
LOAD_SECONDS = 2.0
IN_FLIGHT = 64


@contextmanager
def measured(platform: Platform, records: int) -> Iterator[Figures]:
    """Fills in rate and CPU of the body, which moves ``records``."""
    figures: Figures = {}
    pid = platform.pids()[-1]
    cpu, began = cpu_seconds(pid), time.perf_counter()
    yield figures
    seconds = time.perf_counter() - began
    figures["records_per_second"] = records / seconds
    figures["node_cpu_us_per_record"] = (cpu_seconds(pid) - cpu) * 1e6 / records


def bench_produce(platform: Platform, client: headrace.Client, size: int) -> Figures:
    """Batches from one Python client, as full as they get."""
    value = b"x" * size
    with measured(platform, RECORDS) as figures:
        client.topic(f"bench-{size}").send_many([value] * RECORDS)
    return figures


def bench_consume(platform: Platform, client: headrace.Client, size: int) -> Figures:
    """One round of what `produce` wrote, without a group."""
    bench_produce(platform, client, size)
    read = 0
    with measured(platform, RECORDS) as figures:
        for batch in client.topic(f"bench-{size}").consume(start="earliest").batches():
            read += len(batch)
            if read >= RECORDS:
                break
    return figures


def bench_send(platform: Platform, client: headrace.Client, size: int) -> Figures:
    """One record a call, each waited for."""
    topic, value = client.topic(f"bench-{size}"), b"x" * size
    latencies = []
    with measured(platform, SENDS) as figures:
        for _ in range(SENDS):
            began = time.perf_counter()
            topic.send(value)
            latencies.append(time.perf_counter() - began)
    latencies.sort()
    figures["p50_us"] = latencies[len(latencies) // 2] * 1e6
    figures["p99_us"] = latencies[len(latencies) * 99 // 100] * 1e6
    return figures


def produce_message(profile: Profile, topic: str, size: int) -> bytes:
    """A ProduceRequest of one record, without a producer id: it may be sent again and again."""
    with grpc.insecure_channel(profile.bootstrap) as channel:
        described = rpc.ClusterStub(channel).Describe(
            wire.DescribeRequest(topics=[topic]),
            metadata=(("authorization", f"Bearer {profile.key}"),),
            timeout=10,
        )
    record = codec.Record(key=None, value=b"x" * size, timestamp_us=0)
    found = described.topics[0]
    return wire.ProduceRequest(
        topic=found.number, created_revision=found.created_revision, batch=codec.encode([record])
    ).SerializeToString()


def load(platform: Platform, size: int, how: str) -> Figures:
    """What load.c gets through, and what it costs the node."""
    profile = platform.profile()
    message = FOLDER / "message.bin"
    message.write_bytes(produce_message(profile, f"bench-{size}", size))
    method = "ProduceStream" if how == "stream" else "Produce"
    pid = platform.pids()[-1]
    cpu = cpu_seconds(pid)
    figures = said(
        built("load", "nghttp2"),
        profile.bootstrap.rpartition(":")[2],
        f"/headrace.stream.v1.Stream/{method}",
        profile.key,
        message,
        str(IN_FLIGHT),
        str(LOAD_SECONDS),
        how,
    )
    assert not figures["errors"], figures
    figures["node_cpu_us_per_record"] = (cpu_seconds(pid) - cpu) * 1e6 / figures["calls"]
    return figures


def bench_unary(platform: Platform, _client: headrace.Client, size: int) -> Figures:
    """Unary produce."""
    return load(platform, size, "unary")


def bench_stream(platform: Platform, _client: headrace.Client, size: int) -> Figures:
    """Produce on one stream."""
    return load(platform, size, "stream")


Bench = Callable[[Platform, headrace.Client, int], Figures]
BENCHES: dict[str, Bench] = {
    "produce": bench_produce,
    "consume": bench_consume,
    "send": bench_send,
    "unary": bench_unary,
    "stream": bench_stream,
}


def summary(rounds: list[Figures]) -> dict[str, dict[str, float]]:
    """Median and spread of each figure."""
    return {
        name: {
            "median": round(statistics.median(r[name] for r in rounds), 3),
            "min": round(min(r[name] for r in rounds), 3),
            "max": round(max(r[name] for r in rounds), 3),
        }
        for name in rounds[0]
    }


def run(name: str, platform: Platform, client: headrace.Client, limits: Figures) -> None:
    """One benchmark over all sizes; writes its file and prints a line a size."""
    results = {}
    for size in SIZES:
        results[str(size)] = summary([BENCHES[name](platform, client, size) for _ in range(ROUNDS)])
        said = "  ".join(f"{k} {v['median']:,.2f}" for k, v in results[str(size)].items())
        print(f"{name:<8} {size:>5} B  {said}", flush=True)
    report = {"schema": 1, "name": name, "rounds": ROUNDS, "limits": limits, "by_size": results}
    (FOLDER / f"{name}.json").write_text(json.dumps(report, indent=2) + "\n")


def main(names: list[str]) -> int:
    """Runs the named benchmarks, or all."""
    unknown = sorted(set(names) - BENCHES.keys())
    if unknown:
        print(f"unknown benchmark {unknown}; there are {sorted(BENCHES)}", file=sys.stderr)
        return 2
    shutil.rmtree(FOLDER / "platform", ignore_errors=True)
    FOLDER.mkdir(parents=True, exist_ok=True)
    limits = machine_limits()
    print("limits   " + "  ".join(f"{name} {value:,.0f}" for name, value in limits.items()))
    with Platform(FOLDER / "platform") as platform:
        profile = platform.profile()
        with headrace.connect(
            api_url=profile.api_url, bootstrap=profile.bootstrap, key=profile.key
        ) as client:
            for size in SIZES:
                platform.cli("topic", "create", f"bench-{size}", "--partitions", "1", "--wait")
            for name in names or list(BENCHES):
                run(name, platform, client, limits)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
