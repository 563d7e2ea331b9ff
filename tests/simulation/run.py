"""`make sim`: many seeds of the deterministic simulator; the last line is JSON.

Owns the loop over seeds, the regression list and the trace page. Everything that happens in a seed
is decided in C (native/sim): the same seed and commit give the same world.
"""

from __future__ import annotations

import argparse
import html
import json
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from native._engine_sim import ffi, lib

ROOT = Path(__file__).resolve().parent.parent.parent
REGRESSIONS = Path(__file__).resolve().parent / "regressions.txt"
STEPS = 1500
SEEDS_TELLING = 200  # in so many seeds every declared kind of fault has to fire
TWICE_EVERY = 20  # one seed in so many is run twice: the same seed gives the same world
TRACE_BYTES = 1 << 24
TOPICS = (
    *("topics_sealed", "topics_forced", "topics_recreated", "topics_grown", "unlinks_failed"),
    *("trims", "purges", "holds"),
)
FAULTS = tuple(
    bytes(ffi.string(lib.sim_fault_name(index))).decode() for index in range(lib.SIM_FAULTS_COUNT)
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one seed gave; ``message`` is empty if all held."""

    seed: int
    message: str
    step: int
    simulated_us: int
    faults: tuple[int, ...]
    batches_acked: int
    recoveries: int
    extents_released: int
    segments_sealed: int
    metadata_ops: int
    closes: int
    topics: dict[str, int]
    stopped: int
    refused: int
    hash: int
    trace: str


def run_seed(seed: int, *, steps: int = STEPS, trace: bool = False, nodes: int = 1) -> Outcome:
    """Run one seed of ``steps`` actions on ``nodes`` nodes."""
    result = ffi.new("struct sim_result *")
    room = TRACE_BYTES if trace else 0
    buffer = ffi.new("char[]", room) if trace else ffi.NULL
    lib.sim_run(seed, nodes, steps, buffer, room, result)
    message: bytes = ffi.string(result.message)
    return Outcome(
        seed=seed,
        message=message.decode(errors="replace"),
        step=result.steps,
        simulated_us=result.simulated_us,
        faults=tuple(result.faults),
        batches_acked=result.batches_acked,
        recoveries=result.recoveries,
        extents_released=result.extents_released,
        segments_sealed=result.segments_sealed,
        metadata_ops=result.metadata_ops,
        closes=result.closes,
        topics={name: getattr(result, name) for name in TOPICS},
        stopped=result.stopped,
        refused=result.refused,
        hash=result.hash,
        trace=bytes(ffi.buffer(buffer, result.trace_size)).decode() if trace else "",
    )


def say(line: str) -> None:
    """One line to standard output."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def regressions() -> list[int]:
    """Seeds that once failed: `seed commit what it was`, one a line."""
    lines = REGRESSIONS.read_text().splitlines()
    return [int(line.split()[0]) for line in lines if line.strip() and not line.startswith("#")]


def trace_page(outcome: Outcome) -> str:
    """The timeline of a seed: one row an event, one colour a lane."""
    rows = []
    for line in outcome.trace.splitlines():
        at, lane, text = line.split("|", 2)
        rows.append(
            f'<tr class="{html.escape(lane)}"><td>{int(at) / 1e6:.6f}</td>'
            f"<td>{html.escape(lane)}</td><td>{html.escape(text)}</td></tr>"
        )
    verdict = outcome.message or "everything held"
    return (
        "<!doctype html><meta charset=utf-8>"
        f"<title>seed {outcome.seed}</title><style>body{{font:14px monospace;margin:2em}}"
        "td{padding:.1em 1em;vertical-align:top}tr.crash{background:#fdd}"
        "tr.recovery{background:#dfd}tr.failure{background:#f66}</style>"
        f"<h1>seed {outcome.seed}: {html.escape(verdict)}</h1>"
        f"<p>{outcome.step} steps, {outcome.simulated_us / 1e6:.1f} simulated seconds, "
        f"{outcome.recoveries} recoveries, {outcome.batches_acked} batches acknowledged</p>"
        f"<table><tr><th>seconds</th><th>lane</th><th>what</th></tr>{''.join(rows)}</table>"
    )


def write_trace(outcome: Outcome) -> Path:
    """Write the page under build/sim/ and say where."""
    folder = ROOT / "build" / "sim"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"seed-{outcome.seed}.html"
    path.write_text(trace_page(outcome))
    return path


def main(arguments: list[str] | None = None) -> int:
    """Run what was asked for; 0 = no seed failed."""
    parser = argparse.ArgumentParser(prog="make sim", description=__doc__)
    parser.add_argument("--seeds", type=int, default=200, help="how many, from 1 on")
    parser.add_argument("--seed", type=int, default=None, help="only this one")
    parser.add_argument("--nodes", type=int, default=1, help="nodes of the cluster")
    parser.add_argument("--steps", type=int, default=STEPS, help="actions of a seed")
    parser.add_argument("--trace", action="store_true", help="write a timeline to build/sim/")
    options = parser.parse_args(arguments)
    if options.seed is not None:
        seeds = [options.seed]
    else:
        seeds = sorted({*range(1, options.seeds + 1), *regressions()})
    outcomes = []
    problems = 0
    for seed in seeds:
        run = partial(run_seed, seed, steps=options.steps, nodes=options.nodes)
        outcome = run(trace=options.trace)
        outcomes.append(outcome)
        if outcome.message:
            say(f"seed {seed}, step {outcome.step}: {outcome.message}")
            say(f"  again: make sim SEED={seed} TRACE=1")
        if seed % TWICE_EVERY == 0 and run().hash != outcome.hash:
            problems += 1
            say(f"seed {seed}: a second run of it gave another world")
        if options.trace:
            say(f"timeline: {write_trace(outcome)}")
    problems += sum(1 for outcome in outcomes if outcome.message)
    fired = {name: sum(o.faults[index] for o in outcomes) for index, name in enumerate(FAULTS)}
    silent = [name for name, count in fired.items() if count == 0]
    if silent and len(outcomes) >= SEEDS_TELLING:
        problems += 1
        say(f"faults that never fired: {', '.join(silent)}")
    summary = {
        "seeds": len(outcomes),
        "failures": problems,
        "simulated_seconds": round(sum(o.simulated_us for o in outcomes) / 1e6, 3),
        "faults": fired,
        "stopped": sum(o.stopped for o in outcomes),
        "refused": sum(o.refused for o in outcomes),
        "batches_acked": sum(o.batches_acked for o in outcomes),
        "recoveries": sum(o.recoveries for o in outcomes),
        "extents_released": sum(o.extents_released for o in outcomes),
        **{name: sum(o.topics[name] for o in outcomes) for name in TOPICS},
    }
    say(json.dumps(summary))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
