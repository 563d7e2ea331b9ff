"""Every metric of a node has a HELP line that an operator understands."""

import re
from pathlib import Path

import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from tests.support.processes.node_process import NodeProcess
from tests.support.words import BANNED

# One sentence: a capital (or gRPC, or a value), at least three words, a period at its end only.
SENTENCE = re.compile(r"(?:[A-Z0-9]|gRPC )[^.\n]* [^.\n]* [^.\n]*\.")
UNITS = ("bytes", "seconds")


@pytest.fixture(scope="module")
def families(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Metric]:
    folder: Path = tmp_path_factory.mktemp("metrics")
    with NodeProcess(folder) as node:
        text = node.http("/metrics")[1]
    return {family.name: family for family in text_string_to_metric_families(text)}


def test_engine_and_host_are_both_measured(families: dict[str, Metric]) -> None:
    assert {"headrace_journal_rounds", "headrace_host_calls", "headrace_calls"} <= families.keys()
    assert len(families) > 90


def test_every_metric_has_a_type_and_one_sentence_of_help(families: dict[str, Metric]) -> None:
    assert {
        name: (family.type, family.documentation)
        for name, family in families.items()
        if family.type == "unknown" or not SENTENCE.fullmatch(family.documentation)
    } == {}


def test_the_help_names_the_unit_of_the_name(families: dict[str, Metric]) -> None:
    assert [
        name
        for name, family in families.items()
        for unit in UNITS
        if name.endswith(f"_{unit}") and unit not in family.documentation.lower()
    ] == []


def test_the_help_uses_no_banned_word(families: dict[str, Metric]) -> None:
    assert [name for name, family in families.items() if BANNED.search(family.documentation)] == []
