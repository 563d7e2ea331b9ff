"""The cffi modules; everything else stands in pyproject.toml."""

import os

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel

# Empty: an editable install, whose modules are built in place by a step of its own.
MODULES = os.environ.get("HEADRACE_MODULES", "engine,engine_sim,codec").split(",")
TESTS_ALONE = {"native._engine_sim"}


class Wheel(bdist_wheel):
    """What is installed: the engine and the codec, without the simulator."""

    def run(self) -> None:
        """Build the wheel."""
        extensions = self.distribution.ext_modules or []
        self.distribution.ext_modules = [e for e in extensions if e.name not in TESTS_ALONE]
        super().run()


setup(
    cffi_modules=[f"native/build.py:{module}" for module in MODULES if module],
    cmdclass={"bdist_wheel": Wheel},
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
