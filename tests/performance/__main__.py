"""`make bench [WHAT=name]`: benchmarks of the real processes; build/bench/NAME.json each.

    produce    many records through one Python client: server CPU a record, records a second
    consume    the same records out again
    send       one record a call, one in flight: what a synchronous caller feels

The first figure is the node's CPU-microseconds a record, read from /proc: it does not depend on how
busy the machine is. Rates stand beside the machine's own limits, measured in the same run by
limit.c. Medians of five rounds, with the spread. Refuses to judge: bounds are tests' business.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import headrace  # noqa: E402 - found by the path above
from tests.support.platform import Platform  # noqa: E402

FOLDER = ROOT / "build" / "bench"
ROUNDS = 5
RECORDS = 200_000
SENDS = 2_000
SIZES = (100, 1024)
LIMIT_SECONDS = 0.5
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")

Figures = dict[str, float]


def machine_limits() -> Figures:
    """What the machine allows right now, by limit.c."""
    program = FOLDER / "limit"
    source = ROOT / "tests" / "performance" / "limit.c"
    flags = ["-std=gnu11", "-D_GNU_SOURCE", "-O2", "-pthread"]
    subprocess.run(["cc", *flags, str(source), "-lisal", "-o", str(program)], check=True)
    said = subprocess.run(
        [program, FOLDER, str(LIMIT_SECONDS)], check=True, capture_output=True, text=True
    )
    limits: Figures = json.loads(said.stdout)
    return limits


def cpu_seconds(pid: int) -> float:
    """User and system time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


@contextmanager
def measured(platform: Platform, records: int) -> Iterator[Figures]:
    """Fills in rate and CPU of the body, which moves ``records``."""
    figures: Figures = {}
    pid = platform.node_pid()
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


Bench = Callable[[Platform, headrace.Client, int], Figures]
BENCHES: dict[str, Bench] = {
    "produce": bench_produce,
    "consume": bench_consume,
    "send": bench_send,
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
