"""Damage and a full disk, each logged once, from the engine's metrics."""

import logging
import shutil
from pathlib import Path

import pytest

from dataplane.observability.node_status import (
    DAMAGED_METRIC,
    FULL_METRIC,
    READINGS_UNTIL_FREE,
    Conditions,
)
from tests.support.builders.node_objects import furnish
from tests.support.processes.node_process import NodeProcess


class Metrics:
    """The two metrics that are read, as the engine sums them over two shards."""

    def __init__(self) -> None:
        self.damaged = 0
        self.full = 0

    def total(self, metric: str) -> int:
        """What the engine says of a metric: another shard has one damaged partition too."""
        return {DAMAGED_METRIC: self.damaged + 1, FULL_METRIC: self.full}[metric]


def test_damage_is_said_once_per_change(caplog: pytest.LogCaptureFixture) -> None:
    metrics = Metrics()
    conditions = Conditions(metrics.total)
    for damaged in (0, 0, 2, 2, 2, 0, 0):
        metrics.damaged = damaged
        conditions.update()
    assert [(record.levelno, record.args) for record in caplog.records] == [
        (logging.ERROR, (1,)),
        (logging.ERROR, (3,)),
        (logging.WARNING, (1, 3)),
    ]
    assert conditions.warning().startswith("DAMAGED: 1 partitions")


def test_a_full_disk_is_said_once_though_the_shard_tries_again_in_between(
    caplog: pytest.LogCaptureFixture,
) -> None:
    metrics = Metrics()
    conditions = Conditions(metrics.total)
    for full in (1, 0, 1, 0, 0, 1, *[0] * (READINGS_UNTIL_FREE - 1)):
        metrics.full = full
        conditions.update()
        assert conditions.warning().startswith("STORAGE_FULL")
    conditions.update()
    assert "STORAGE_FULL" not in conditions.warning()
    said = [record.getMessage() for record in caplog.records if "disk" in record.getMessage()]
    assert [text.split(":")[0] for text in said] == [
        "the disk is full",
        "the disk has space again",
    ]


def test_a_node_has_the_metrics_and_tells_of_a_spool_that_is_gone(tmp_path: Path) -> None:
    with NodeProcess(tmp_path) as node:
        furnish(node)
        text = node.http("/metrics")[1]
        for metric in (DAMAGED_METRIC, FULL_METRIC):
            assert f'{metric}{{shard="0"}} 0' in text
        assert node.http("/readyz") == (200, "ready\n")
        assert "headrace_usage_spools_lost_total 0.0" in text
        node.terminate()
        shutil.rmtree(tmp_path / "node-1" / "spool")
        node.start()
        assert "headrace_usage_spools_lost_total 1.0" in node.http("/metrics")[1]
        assert "the usage spool is gone" in node.log()
        node.terminate()
        node.start()
        assert "headrace_usage_spools_lost_total 0.0" in node.http("/metrics")[1]
