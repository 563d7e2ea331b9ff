"""Every partition is told with its own holds and limits, however many there are."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from pyspark.sql import Row

from reports.retention.export import Hold, RetentionExport
from reports.retention.inputs import FrozenRetention
from reports.retention.offsets import Offsets
from reports.retention.standings import lines, places
from tests.reports.retention.building import Picture, export, handles, hold, policy


class Counted(tuple[Hold, ...]):
    """Holds that count how often they are gone through."""

    __slots__ = ()
    passes: ClassVar[list[int]] = []

    def __iter__(self) -> Iterator[Hold]:
        self.passes.append(1)
        return super().__iter__()


def test_holds_are_gone_through_once_however_many_partitions_there_are() -> None:
    topics = ("flights", "orders")
    holds = [
        hold("hold_1", from_offset="7"),
        hold("hold_2", partition=1, from_offset="3"),
        hold("hold_3", partition=1, state="RELEASED", from_offset="1"),
        hold("hold_4", topic_id="tp_orders"),
    ]
    told = export(topics=topics, holds=holds)
    told = replace(told, holds=Counted(told.holds))
    frozen = _frozen(told, partitions=50)
    Counted.passes.clear()
    held = {
        (row["topic"], row["partition"]): row["held_from"] for row in places(frozen, {}).to_pylist()
    }
    assert len(Counted.passes) == 1
    assert (held[16, 0], held[16, 1], held[17, 49]) == (7, 3, 0)
    Counted.passes.clear()
    found = {(line.topic_id, line.partition): line.holds for line in lines(frozen, {}, {}, {})}
    assert len(Counted.passes) == 1
    assert found["tp_flights", 0] == ("hold_1",)
    assert found["tp_flights", 1] == ("hold_1", "hold_2")
    assert found["tp_orders", 1] == ("hold_4",)


def test_a_limit_of_0_that_a_node_was_once_told_is_none() -> None:
    seen = Row(**Picture(retention_ms=0, retention_bytes=0).row())
    unknown = _frozen(export(policies=[policy("tp_gone")]))
    (row,) = places(unknown, {(16, 3, 0): seen}).to_pylist()
    assert (row["retention_ms"], row["retention_bytes"]) == (-1, -1)
    unlimited = export(policies=[policy(retention_ms="-1", changed_at="2020-01-01T00:00:00Z")])
    (line,) = lines(_frozen(unlimited), {(16, 3, 0): seen}, {}, {})
    assert "POLICY_MISMATCH" not in line.codes


def _frozen(told: RetentionExport, partitions: int = 1) -> FrozenRetention:
    names = [each.removeprefix("tp_") for each in told.topics]
    offsets = Offsets((), complete=True)
    topics = tuple(handles(names, partitions))
    return FrozenRetention(Path(), "", told, topics, offsets, from_beginning=True)
