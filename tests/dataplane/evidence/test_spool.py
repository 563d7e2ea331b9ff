"""The spool: durable once, published once, whole after any crash."""

import contextlib
import errno
import os
import resource
import stat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.engine.frames import PartitionId
from dataplane.evidence.boot import Boot
from dataplane.evidence.spool import SEGMENT_BYTES_MAX, Record, Spool, SpoolDamaged
from tests.support.processes.disk import Disk

P = PartitionId(16, 5, 0)
Q = PartitionId(16, 5, 1)


def _record(sequence: int, partition: PartitionId = P, value: bytes = b"usage") -> Record:
    return Record(partition, sequence, sequence * 1_000_000, value)


def _reopened(spool: Spool, folder: Path) -> Spool:
    spool.close()
    return Spool(folder)


def _change(spool: Spool, change: bytes) -> None:
    spool.store(change)
    spool.settle(change)


def _append(spool: Spool, records: list[Record]) -> bool:
    """False: none of them was new."""
    change = spool.appending(records)
    if change is not None:
        _change(spool, change)
    return change is not None


def _publish(spool: Spool) -> None:
    _change(spool, spool.publishing(spool.pending[0]))


def test_what_is_appended_survives_and_keeps_its_batch_and_producer(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    _append(spool, [_record(1), _record(1, Q)])
    _append(spool, [_record(2)])
    again = _reopened(spool, tmp_path)
    assert [entry.number for entry in again.pending] == [0, 2]
    assert again.pending == spool.pending
    assert again.producer == spool.producer
    assert again.number_next == 3


def test_a_window_is_taken_once(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    _append(spool, [_record(1), _record(1)])
    assert not _append(spool, [_record(1)])
    again = _reopened(spool, tmp_path)
    assert not _append(again, [_record(1)])
    assert _append(again, [_record(1), _record(2), _record(1, Q)])
    assert [(r.partition, r.sequence) for r in again.pending[-1].records] == [(P, 2), (Q, 1)]


def test_published_entries_are_not_published_again(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    _append(spool, [_record(1)])
    _append(spool, [_record(2)])
    assert not spool.is_published(P, 1)
    _publish(spool)
    assert spool.is_published(P, 1)
    assert not spool.is_published(P, 2)
    again = _reopened(spool, tmp_path)
    assert [entry.number for entry in again.pending] == [1]
    assert again.is_published(P, 1)
    assert again.published == 1


def test_a_new_producer_begins_at_the_oldest_entry_that_waits(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    _append(spool, [_record(1)])
    _publish(spool)
    _append(spool, [_record(2)])
    before = spool.producer
    _change(spool, spool.rotating())
    assert spool.producer.id != before.id
    assert spool.producer.base == 1
    assert _reopened(spool, tmp_path).producer == spool.producer


def test_segments_are_bounded_and_go_once_published(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    value = bytes(SEGMENT_BYTES_MAX // 4)
    for sequence in range(1, 13):
        _append(spool, [_record(sequence, value=value)])
    assert len(list(tmp_path.glob("*.spool"))) == 3
    spool = _reopened(spool, tmp_path)
    assert len(list(tmp_path.glob("*.spool"))) == 4
    assert [entry.number for entry in spool.pending] == list(range(12))
    while spool.pending:
        _publish(spool)
    assert len(list(tmp_path.glob("*.spool"))) == 1
    again = _reopened(spool, tmp_path)
    assert again.sequences == {P: 12}
    assert (again.number_next, again.published) == (12, 12)


@given(
    steps=st.lists(st.sampled_from(["append", "publish"]), min_size=1, max_size=12),
    lost=st.integers(1, 200),
)
@settings(max_examples=40, deadline=None)
def test_a_torn_tail_is_cut_to_whole_entries(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str], lost: int
) -> None:
    folder = tmp_path_factory.mktemp("spool")
    spool = Spool(folder)
    states = [(list(spool.pending), spool.published)]
    sizes = [_segment(folder).stat().st_size]
    for sequence, step in enumerate(steps, start=1):
        if step == "append" or not spool.pending:
            _append(spool, [_record(sequence)])
        else:
            _publish(spool)
        states.append((list(spool.pending), spool.published))
        sizes.append(_segment(folder).stat().st_size)
    spool.close()
    cut = max(sizes[0], sizes[-1] - lost)
    with _segment(folder).open("r+b") as file:
        file.truncate(cut)
    whole = max(index for index, size in enumerate(sizes) if size <= cut)
    again = Spool(folder)
    assert (list(again.pending), again.published) == states[whole]
    assert _append(again, [_record(99)])
    before = (list(again.pending), again.published, again.sequences)
    again = _reopened(again, folder)
    assert (list(again.pending), again.published, again.sequences) == before
    again.close()


def test_damage_before_the_last_segment_is_refused_by_name(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    value = bytes(SEGMENT_BYTES_MAX // 2)
    for sequence in range(1, 5):
        _append(spool, [_record(sequence, value=value)])
    spool.close()
    first = sorted(tmp_path.glob("*.spool"))[0]
    data = bytearray(first.read_bytes())
    data[SEGMENT_BYTES_MAX // 4] ^= 1
    first.write_bytes(data)
    with pytest.raises(SpoolDamaged, match=first.name):
        Spool(tmp_path)


def test_a_missing_segment_is_refused(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    value = bytes(SEGMENT_BYTES_MAX // 2)
    for sequence in range(1, 9):
        _append(spool, [_record(sequence, value=value)])
    spool.close()
    paths = sorted(tmp_path.glob("*.spool"))
    paths[1].unlink()
    with pytest.raises(SpoolDamaged, match="are missing"):
        Spool(tmp_path)


@given(room=st.integers(1, 200), steps=st.lists(st.booleans(), min_size=1, max_size=6))
@settings(max_examples=40, deadline=None)
def test_a_disk_that_is_full_for_a_while_loses_and_repeats_nothing(
    tmp_path_factory: pytest.TempPathFactory, room: int, steps: list[bool]
) -> None:
    folder = tmp_path_factory.mktemp("spool")
    spool = Spool(folder)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    for sequence, full in enumerate(steps, start=1):
        if full:
            # The file system takes only a part of the next write, or nothing.
            limit = _segment(folder).stat().st_size + room
            resource.setrlimit(resource.RLIMIT_FSIZE, (min(limit, 200), before[1]))
        with contextlib.suppress(OSError):
            _append(spool, [_record(sequence)])
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert _append(spool, [_record(sequence)]) or spool.holds(P, sequence)
    expected = [(number, number + 1) for number in range(len(steps))]
    for found in (spool, _reopened(spool, folder)):
        assert [(e.number, e.records[0].sequence) for e in found.pending] == expected
    spool.close()


def test_a_start_without_room_keeps_what_waits_and_takes_more_once_there_is(
    tmp_path: Path,
) -> None:
    with Disk(tmp_path / "disk", 1) as disk:
        folder = disk.seen / "spool"
        spool = Spool(folder)
        _append(spool, [_record(1)])
        spool.close()
        disk.fill()
        for _ in range(2):
            spool = Spool(folder)
            assert [entry.number for entry in spool.pending] == [0]
            with pytest.raises(OSError, match="No space left"):
                _append(spool, [_record(2)])
            spool.close()
        spool = Spool(folder)
        disk.free()
        _append(spool, [_record(2)])
        for found in (spool, _reopened(spool, folder)):
            assert [entry.number for entry in found.pending] == [0, 1]
            found.close()


def _segment(folder: Path) -> Path:
    return sorted(folder.glob("*.spool"))[-1]


def test_writing_leaves_the_state_to_the_loop(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    before = (spool.number_next, spool.published, list(spool.pending), dict(spool.sequences))
    change = spool.appending([_record(1)])
    assert change is not None
    spool.store(change)
    assert (spool.number_next, spool.published, list(spool.pending), spool.sequences) == before
    spool.settle(change)
    assert spool.holds(P, 1)
    change = spool.publishing(spool.pending[0])
    spool.store(change)
    assert not spool.is_published(P, 1)
    spool.settle(change)
    assert spool.is_published(P, 1)


def test_a_change_that_was_stored_and_not_settled_counts_after_the_next_start(
    tmp_path: Path,
) -> None:
    spool = Spool(tmp_path)
    change = spool.appending([_record(1)])
    assert change is not None
    spool.store(change)
    assert _reopened(spool, tmp_path).holds(P, 1)


def test_a_closed_spool_writes_nothing_more(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    change = spool.rotating()
    spool.close()
    with pytest.raises(OSError, match="closed"):
        spool.store(change)


def test_a_failed_sync_of_the_folder_leaves_no_descriptor_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = Spool(tmp_path)
    for sequence in (1, 2):
        _append(spool, [_record(sequence, value=bytes(SEGMENT_BYTES_MAX))])
    fsync = os.fsync

    def failing(file: int) -> None:
        if stat.S_ISDIR(os.fstat(file).st_mode):
            raise OSError(errno.EIO, "the disk does not answer")
        fsync(file)

    monkeypatch.setattr(os, "fsync", failing)
    for _ in range(3):
        with pytest.raises(OSError, match="does not answer"):
            _append(spool, [_record(3)])
    with pytest.raises(OSError, match="does not answer"):
        Boot(tmp_path).keep()
    assert _opened(tmp_path) == 0
    monkeypatch.undo()
    _append(spool, [_record(3)])
    assert [entry.number for entry in _reopened(spool, tmp_path).pending] == [0, 1, 2]


def _opened(folder: Path) -> int:
    """How many descriptors of this process are open at a folder."""
    found = 0
    for file in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # the one that lists them
            found += file.readlink() == folder
    return found
