"""Our import names are plain words, so nothing else in the environment may claim them."""

import importlib.metadata
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("api", "dataplane", "headrace", "native", "reports")


@pytest.mark.parametrize("name", NAMES)
def test_no_other_distribution_installs_our_name(name: str) -> None:
    owners = set(importlib.metadata.packages_distributions().get(name, ()))
    assert owners <= {"headrace-server", "headrace"}


@pytest.mark.parametrize("name", NAMES)
def test_the_name_imports_the_folder_of_this_checkout(name: str) -> None:
    module = __import__(name)
    assert module.__file__ is not None
    assert Path(module.__file__).parent == ROOT / name


def test_no_name_hides_a_module_of_the_standard_library() -> None:
    assert not set(NAMES) & sys.stdlib_module_names
