"""What all tests share: with HEADRACE_ENGINE_SIM set, the engine under test is that build of it.

`make check` names the one with sanitizers; a sanitized module in place of the plain one would break
the next plain run.
"""

import importlib.util
import os
import sys

BUILD = os.environ.get("HEADRACE_ENGINE_SIM")

if BUILD:
    spec = importlib.util.spec_from_file_location("native._engine_sim", BUILD)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules["native._engine_sim"] = module
