"""The generated stubs are what the generator makes of the protos today, and one copy each."""

import subprocess
from pathlib import Path

import pytest

from tests.support.source import ROOT, below


@pytest.mark.timeout(1800)  # the first run fetches the generator
@pytest.mark.check
def test_committed_stubs_equal_generated_ones(tmp_path: Path) -> None:
    done = subprocess.run(
        ["deploy/protos.sh", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    generated = {
        path.relative_to(tmp_path).as_posix(): path.read_text()
        for path in tmp_path.rglob("*_pb2*.py*")
    }
    committed = {
        path.relative_to(ROOT).as_posix(): path.read_text()
        for folder in ("headrace", "dataplane")
        for path in below(ROOT / folder, "*_pb2*.py*")
        if path.suffix in {".py", ".pyi"}
    }
    stale = sorted(name for name in generated if committed.get(name) != generated[name])
    assert not stale, f"run `make proto`: {stale} differ from their protos"
    assert committed.keys() == generated.keys()
