"""The cffi modules; everything else stands in pyproject.toml."""

import os

from setuptools import setup

MODULES = os.environ.get("HEADRACE_MODULES", "engine,engine_sim,codec").split(",")

setup(
    cffi_modules=[f"native/build.py:{module}" for module in MODULES],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
