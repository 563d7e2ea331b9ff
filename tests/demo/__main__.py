"""`make demo`: the product in acts, on real processes; its figures go to build/demo.json.

Run as a script: `.venv/bin/python tests/demo`. Exit code 0 only if every act passed.
"""

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.demo.bill import play_bill  # noqa: E402 - the line above makes these importable
from tests.demo.crash import play_crash  # noqa: E402
from tests.demo.flow import play_flow  # noqa: E402
from tests.demo.retain import play_retain  # noqa: E402
from tests.support.processes.platform import Platform  # noqa: E402
from tests.support.stories.stage import Act, Figures, Stage  # noqa: E402

SCHEMA = 1
ACTS: tuple[tuple[str, Act], ...] = (
    ("flow", play_flow),
    ("crash", play_crash),
    ("bill", play_bill),
    ("retain", play_retain),
)
# Top level of demo.json: these come from one act ...
FIGURES_OF_FLOW = (
    "records_produced",
    "records_consumed",
    "produce_records_per_second",
    "consume_records_per_second",
    "topic_ready_seconds",
)
FIGURES_OF_BILL = (
    "bytes_in_log",
    "bytes_billed",
    "usage_rows",
    "invoice_total",
    "invoice_currency",
    "invoice_lines",
    "reconciliation",
)
FIGURES_OF_RETAIN = ("retention_deleted_bytes", "retention_violations", "hold_blocked_bytes")
# ... and these are summed over the acts that have them.
FIGURES_SUMMED = ("duplicates", "missing", "acked_lost")


def commit() -> str:
    """The commit that is played; empty outside a repository."""
    done = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip()


def play(stage: Stage) -> list[dict[str, object]]:
    """Every act in order; an act that fails ends the play, since later ones stand on it."""
    played: list[dict[str, object]] = []
    for name, act in ACTS:
        began = time.monotonic()
        try:
            figures, line = act(stage)
            ok = True
        except Exception as error:  # the demo must print FAIL and write its file whatever happened
            figures, line, ok = {}, f"{type(error).__name__}: {error}", False
        seconds = time.monotonic() - began
        print(f"{'PASS' if ok else 'FAIL'} {name} {line} ({seconds:.1f} s)", flush=True)
        played.append({"name": name, "ok": ok, "seconds": round(seconds, 3), "figures": figures})
        if not ok:
            print("\n".join(stage.log_tails()))
            break
    return played


def top_level(played: list[dict[str, object]]) -> Figures:
    """The figures that stand outside the acts."""
    figures: dict[str, Figures] = {}
    for act in played:
        of_act = act["figures"]
        assert isinstance(of_act, dict)
        figures[str(act["name"])] = of_act
    found: Figures = {}
    for act_name, names in (
        ("flow", FIGURES_OF_FLOW),
        ("bill", FIGURES_OF_BILL),
        ("retain", FIGURES_OF_RETAIN),
    ):
        of_act = figures.get(act_name, {})
        found.update({name: of_act[name] for name in names if name in of_act})
    for name in FIGURES_SUMMED:
        having = [of_act[name] for of_act in figures.values() if name in of_act]
        found[name] = sum(int(value) for value in having)
    return found


def main() -> int:
    began = time.monotonic()
    folder = ROOT / "build" / "demo"
    shutil.rmtree(folder, ignore_errors=True)
    with Platform(folder, "--metering-window", "5") as platform:
        stage = Stage(platform)
        print(f"Headrace is up: {platform.profile().api_url}", flush=True)
        played = play(stage)
    ok = len(played) == len(ACTS) and all(act["ok"] for act in played)
    seconds = time.monotonic() - began
    result = {
        "schema": SCHEMA,
        "commit": commit(),
        "acts": played,
        **top_level(played),
        "seconds_total": round(seconds, 3),
    }
    (ROOT / "build" / "demo.json").write_text(json.dumps(result, indent=2) + "\n")
    for path in stage.reports:
        print(f"report: {path}")
    print("make up keeps it running" if ok else f"logs: {platform.data / 'logs'}")
    return 0 if ok else 1


sys.exit(main())
