"""The cffi modules; everything else stands in pyproject.toml."""

import os

from setuptools import setup

# Empty: an editable install, whose modules are built in place by a step of its own.
MODULES = os.environ.get("HEADRACE_MODULES", "engine,engine_sim,codec").split(",")

setup(
    cffi_modules=[f"native/build.py:{module}" for module in MODULES if module],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
