"""Settings of all tests: Hypothesis profiles, Ctrl-C, PostgreSQL and the build of the engine.

Hypothesis tries the same examples in every run, so that only a change can break the suite;
HYPOTHESIS_PROFILE=explore tries new ones. There is no deadline per example, since machines share
their CPUs.

A shell that starts the suite in the background makes it ignore Ctrl-C, and children inherit this;
tests that interrupt their children need the default behavior.

One PostgreSQL server is used for the whole run; the first test that needs it starts it. `make test`
skips tests marked `check`: slow tests, and those that need this server.

HEADRACE_ENGINE_SIM selects a build of the engine. `make check` sets it to the one with sanitizers;
if that replaced the normal build, the next normal run would fail.
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
    """The server of this run. A test that stops it must start it again."""
    assert pytestconfig.option.markexpr != "not check", "a test of PostgreSQL is marked `check`"
    with Postgres() as server:
        yield server
