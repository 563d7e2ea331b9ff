"""What is deployed fits what is there: units start modules that exist, scripts parse."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
UNITS = sorted((ROOT / "deploy" / "systemd").glob("*.service"))
SCRIPTS = sorted([*(ROOT / "deploy").glob("*.sh"), ROOT / ".ci" / "run"])


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.name)
def test_a_unit_starts_a_module_that_knows_its_options(unit: Path) -> None:
    started = re.search(r"^ExecStart=\S+ -m (\w+) (.*)$", unit.read_text(), flags=re.M)
    assert started is not None
    module, arguments = started.groups()
    helped = subprocess.run(
        [sys.executable, "-m", module, "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    options = re.findall(r"--\w+", arguments)
    assert options
    assert all(option in helped.stdout for option in options)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_script_is_executable_and_parses_as_posix_shell(script: Path) -> None:
    assert script.stat().st_mode & 0o111
    subprocess.run(["sh", "-n", str(script)], check=True)
