"""`make bench [WHAT=name]`: benchmarks of the real processes; build/bench/NAME.json each.

    rpc        one unary call a record beside grpcio servers: the figures of rpc.json
    produce    many records through one Python client: CPU a record on both sides, records a second
    fetch      the same records out again, by that client and pushed to a client in C
    send       one record a call, one in flight: what a synchronous caller feels
    unary      one batch of one record a call, 64 in flight, from a client in C
    stream     the same on one bidirectional stream
    reports    Spark: records a second, and the bill of a million records; only if it is named

The first figure is the node's CPU-microseconds a record: it depends least on how busy the machine
is. Rates stand beside the machine's own limits, measured in the same run by limit.c.
Medians of five rounds, with the spread. Refuses to judge: bounds are tests' business.
"""

import json
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import headrace  # noqa: E402 - found by the path above, like the rest
from headrace.wire import stream_pb2 as wire  # noqa: E402
from tests.performance.load import load, produce_message, topic_of  # noqa: E402
from tests.performance.machine import (  # noqa: E402
    FOLDER,
    Figures,
    cpu_seconds,
    load_of_machine,
    machine_limits,
)
from tests.performance.rpc import bench_rpc  # noqa: E402
from tests.support.processes.platform import Platform  # noqa: E402

ROUNDS = 5
RECORDS = 200_000
SENDS = 1_000
SIZES = (100, 1024)


@contextmanager
def measured(platform: Platform, records: int) -> Iterator[Figures]:
    """Fills in rate and CPU of the body, which moves ``records``."""
    figures: Figures = {}
    pid = platform.pids()[-1]
    cpu, own, began = cpu_seconds(pid), time.process_time(), time.perf_counter()
    yield figures
    seconds = time.perf_counter() - began
    figures["records_per_second"] = records / seconds
    figures["node_cpu_us_per_record"] = (cpu_seconds(pid) - cpu) * 1e6 / records
    figures["client_cpu_us_per_record"] = (time.process_time() - own) * 1e6 / records


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


def bench_fetch(platform: Platform, client: headrace.Client, size: int) -> Figures:
    """What `produce` wrote, pushed to a client in C (Consume) and read in Python."""
    figures = bench_consume(platform, client, size)
    profile, name = platform.profile(), f"bench-{size}"
    found = topic_of(profile, name)
    ends = client.topic(name).offsets_at(timedelta(0))
    begin = wire.ConsumeBegin(
        topic=found.number, created_revision=found.created_revision, credit=1 << 40
    )
    pushed = load(
        platform.pids()[-1],
        profile.bootstrap.rpartition(":")[2],
        profile.key,
        "Consume",
        wire.ConsumeRequest(begin=begin).SerializeToString(),
        how="drain",
        amount=ends[0] * size,
    )
    figures["pushed_mb_per_second"] = pushed["bytes"] / pushed["seconds"] / 1e6
    figures["pushed_node_cpu_us_per_record"] = pushed["cpu_us"] / (pushed["bytes"] / size)
    return figures


def one_by_one(platform: Platform, size: int, method: str, how: str) -> Figures:
    """Batches of one record from load.c."""
    profile = platform.profile()
    figures = load(
        platform.pids()[-1],
        profile.bootstrap.rpartition(":")[2],
        profile.key,
        method,
        produce_message(profile, f"bench-{size}", size),
        how=how,
    )
    figures["node_cpu_us_per_record"] = figures["cpu_us"] / figures["calls"]
    return figures


def bench_unary(platform: Platform, _client: headrace.Client, size: int) -> Figures:
    """Unary produce."""
    return one_by_one(platform, size, "Produce", "unary")


def bench_stream(platform: Platform, _client: headrace.Client, size: int) -> Figures:
    """Produce on one stream."""
    return one_by_one(platform, size, "ProduceStream", "stream")


Bench = Callable[[Platform, headrace.Client, int], Figures]
BENCHES: dict[str, Bench] = {
    "produce": bench_produce,
    "fetch": bench_fetch,
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


def written(name: str, report: dict[str, object]) -> None:
    """build/bench/NAME.json."""
    (FOLDER / f"{name}.json").write_text(json.dumps(report, indent=2) + "\n")


def run(name: str, platform: Platform, client: headrace.Client, limits: Figures) -> None:
    """One benchmark over all sizes; writes its file and prints a line a size."""
    results = {}
    for size in SIZES:
        results[str(size)] = summary([BENCHES[name](platform, client, size) for _ in range(ROUNDS)])
        said = "  ".join(f"{k} {v['median']:,.2f}" for k, v in results[str(size)].items())
        print(f"{name:<8} {size:>5} B  {said}", flush=True)
    report = {"schema": 1, "name": name, "rounds": ROUNDS, "limits": limits, "by_size": results}
    written(name, {**report, "machine_load": load_of_machine()})


def run_rpc(platform: Platform, limits: Figures) -> None:
    """rpc.json: its figures at the top, every round below."""
    figures, rounds = bench_rpc(platform, f"bench-{SIZES[0]}")
    print("rpc      " + "  ".join(f"{name} {value:,.2f}" for name, value in figures.items()))
    told = {name: round(value, 3) for name, value in figures.items()}
    written("rpc", {**told, "rounds": rounds, "limits": limits, "machine_load": load_of_machine()})


def run_reports(platform: Platform, client: headrace.Client, limits: Figures) -> None:
    """reports.json: its figures at the top."""
    # Spark takes a second to import, and nothing else here needs it.
    from tests.performance.reports import bench_reports

    told = {name: round(value, 1) for name, value in bench_reports(platform, client).items()}
    print("reports  " + "  ".join(f"{name} {value:,.1f}" for name, value in told.items()))
    written("reports", {**told, "limits": limits, "machine_load": load_of_machine()})


def main(names: list[str]) -> int:
    """Runs the named benchmarks, or all."""
    known = ["rpc", *BENCHES]
    unknown = sorted(set(names) - {*known, "reports"})
    if unknown:
        print(f"unknown benchmark {unknown}; there are {[*known, 'reports']}", file=sys.stderr)
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
            for name in names or known:
                if name == "rpc":
                    run_rpc(platform, limits)
                elif name == "reports":
                    run_reports(platform, client, limits)
                else:
                    run(name, platform, client, limits)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
