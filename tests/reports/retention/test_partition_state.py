"""Every partition is told with its own holds and limits, however many there are."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from pyspark.sql import Row

from reports.retention.export import Hold, RetentionExport
from reports.retention.figures import HORIZONS
from reports.retention.freeze import FrozenRetention
from reports.retention.offsets import Offsets
from reports.retention.partition_state import Trimmed, lines, places, trimmed_of
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
        (row["topic"], row["partition"]): row["held_from"]
        for row in places(frozen, {}, {}).to_pylist()
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
    (row,) = places(unknown, {(16, 3, 0): seen}, {}).to_pylist()
    assert (row["retention_ms"], row["retention_bytes"]) == (-1, -1)
    unlimited = export(policies=[policy(retention_ms="-1", changed_at="2020-01-01T00:00:00Z")])
    (line,) = lines(_frozen(unlimited), {(16, 3, 0): seen}, {}, {})
    assert "POLICY_MISMATCH" not in line.codes


def test_what_a_purge_cut_is_stored_until_its_segment_goes() -> None:
    place = (16, 3, 0)
    frozen = _frozen(export())
    # Segments of 300 and 700 bytes: a purge took the first and ended inside the other one, in the
    # batch that begins at 40, behind a batch of 200 bytes.
    log = Row(log_start=45, log_end=60, live_bytes=500, live_records=15, bytes_before=500)
    ranges = [
        _range("purge", 0, 44, 0),
        _range("size", 0, 29, 300),
    ]
    trimmed = trimmed_of(ranges, gaps=[])
    assert trimmed == {place: Trimmed(end=45, bytes=300)}
    (row,) = places(frozen, {}, trimmed).to_pylist()
    assert row["log_start"] == 45
    (line,) = lines(frozen, {}, {place: _log(log)}, trimmed)
    assert (line.log_start, line.live_records, line.live_bytes + line.cut_bytes) == (45, 15, 700)
    for unsure in (trimmed_of(ranges, gaps=ranges[:1]), {place: Trimmed(end=44, bytes=300)}):
        (line,) = lines(frozen, {}, {place: _log(log)}, unsure)
        assert line.cut_bytes == 0


def _range(cause: str, first: int, last: int, size: int) -> Row:
    """One row of figures.deleted."""
    where = {"topic": 16, "created_revision": 3, "partition": 0}
    return Row(**where, cause=cause, first_offset=first, last_offset=last, bytes=size)


def _log(known: Row) -> Row:
    """One row of figures.logs; what is not known is 0."""
    names = [
        *("largest_batch", "expired_bytes", "aged_bytes", "held_bytes", "future_bytes"),
        *("end_due_24h", "oldest_us", "newest_us", "next_due_us"),
    ]
    due = {
        f"{name}_{horizon}": 0 for name in ("bytes", "records", "oldest_us") for horizon in HORIZONS
    }
    return Row(**dict.fromkeys(names, 0), **due, **known.asDict())


def _frozen(told: RetentionExport, partitions: int = 1) -> FrozenRetention:
    names = [each.removeprefix("tp_") for each in told.topics]
    offsets = Offsets((), complete=True)
    topics = tuple(handles(names, partitions))
    return FrozenRetention(Path(), "", told, topics, offsets, from_beginning=True)
