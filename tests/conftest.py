"""What all tests share: how properties are searched, and which build of the engine is under test.

Properties are tried on the same examples every time, so that a red suite is the change's doing;
HYPOTHESIS_PROFILE=explore tries new ones. No deadline per example: machines share their CPUs.

A shell that starts the suite in its background has it ignore Ctrl-C, and children inherit that;
tests that interrupt their children need it back.

One PostgreSQL server serves a whole run; it is started when the first test asks for it. `make test`
leaves out what is marked `check`: slow tests, and all that need this server.

With HEADRACE_ENGINE_SIM set, the engine is that build of it. `make check` names the one with
sanitizers; a sanitized module in place of the plain one would break the next plain run.
"""

import importlib.util
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.configuration import set_hypothesis_home_dir

from tests.support.processes.postgres import Postgres

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Among what is built; by default it is a folder in the tree.
set_hypothesis_home_dir(Path(__file__).resolve().parents[1] / "build" / "hypothesis")
settings.register_profile("check", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "check"))

BUILD = os.environ.get("HEADRACE_ENGINE_SIM")

if BUILD:
    spec = importlib.util.spec_from_file_location("native._engine_sim", BUILD)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules["native._engine_sim"] = module


@pytest.fixture(scope="session")
def postgres(pytestconfig: pytest.Config) -> Iterator[Postgres]:
    """The server of this run. Who stops it, starts it again before others need it."""
    assert pytestconfig.option.markexpr != "not check", "a test of PostgreSQL is marked `check`"
    with Postgres() as server:
        yield server
