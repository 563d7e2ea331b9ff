"""retention.c, trim.c: policies, purges and holds over a shard, and the files after
them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headrace import codec
from native._engine_sim import ffi, lib
from tests.support.builders.seeds import place_seed
from tests.support.builders.storage import client_part
from tests.support.builders.store import REVISION, TOPIC, Disk, Store, folder_of

SEGMENT = 1500  # two batches of 700 bytes and a little
FOLDER = folder_of()
SECOND_US = 1_000_000
MINUTE_US = 60 * SECOND_US


def opened(
    disk: Disk | None = None,
    *,
    retention_ms: int = -1,
    retention_bytes: int = -1,
    policy: int = 1,
    segments: int = 0,
) -> Store:
    store = Store(disk or Disk(), segment_bytes=SEGMENT, topic=False, segments=segments)
    assert store.status == "OK", store.detail
    told = store.tables(
        segment_bytes=SEGMENT,
        retention_ms=retention_ms,
        retention_bytes=retention_bytes,
        policy=policy,
    )
    assert told == "OK"
    return store


def fill(store: Store, count: int, *, partition: int = 0) -> None:
    for _ in range(count):
        store.append(client_part(1, size=600), partition)
    store.run()


def settle(store: Store) -> None:
    """A tick, and all that follows from it."""
    store.pass_time(1000)
    store.run()
    store.pass_time(1000)
    store.run()


def offsets(store: Store) -> list[int]:
    """Of every record that can be read, from the log's start."""
    found: list[int] = []
    at = int(store.state().log_start)
    end = int(store.state().log_end)
    while at < end:
        data = store.read(at)
        assert isinstance(data, bytes), data
        for batch in codec.batches(data, place_seed(TOPIC, REVISION, 0)):
            found += range(batch.base_offset, batch.base_offset + batch.record_count)
        at = found[-1] + 1
    return found


def files(disk: Disk) -> list[int]:
    """Base offsets of the segment files."""
    return [int(name.removesuffix(".log")) for name in disk.listed(FOLDER)]


# ---- policies ----


def test_size_takes_the_oldest_segments_and_their_files() -> None:
    store = opened(retention_bytes=3000)
    fill(store, 10)
    settle(store)
    start = store.state().log_start
    assert start > 0
    assert 3000 <= store.state().bytes < 3000 + 2 * SEGMENT
    assert store.read(start - 1) == "TRUNCATED"
    assert offsets(store) == list(range(start, 10))
    assert min(files(store.disk)) == start
    assert store.statistics().partitions_trimming == 0


def test_time_takes_what_is_old_and_in_the_end_everything() -> None:
    store = opened(retention_ms=60_000, policy=7)
    fill(store, 3)
    store.pass_time(40 * SECOND_US)
    fill(store, 3)
    store.pass_time(30 * SECOND_US)
    settle(store)
    (event,) = store.trimmed()
    assert (event.cause, event.policy_version, event.sequence) == (1, 7, 1)
    assert offsets(store) == list(range(event.to_offset, 6))
    assert store.state().expires_us > store.now.wall_us
    store.pass_time(40 * SECOND_US)
    settle(store)
    assert store.state().log_start == store.state().log_end == 6
    assert store.append(client_part(1)).base_offset == 6
    assert offsets(store) == [6]


def test_a_trickle_is_trimmed_in_time_and_goes_on_so_after_a_restart() -> None:
    disk = Disk()
    store = opened(disk, retention_ms=80_000)
    for at in range(60):
        if at == 30:
            now_us = store.now.wall_us
            store = opened(disk, retention_ms=80_000)
            store.now.wall_us = now_us
            lib.store_clock_confirm(store.store, store.now[0])
        store.append(client_part(1))
        settle(store)
        store.pass_time(4 * SECOND_US)
        oldest_us = store.state().oldest_us
        # The policy, an eighth of it for the segment, and one turn of this loop.
        assert store.now.wall_us - oldest_us <= (80 + 10 + 5) * SECOND_US, at
        for event in store.trimmed():
            store.ack_trim(event.sequence)
    assert store.state().log_start > 30
    assert store.statistics().segments_sealed > 10


def test_a_policy_that_comes_later_is_looked_at_at_once() -> None:
    store = opened()
    fill(store, 10)
    store.pass_time(MINUTE_US)
    settle(store)
    assert store.state().log_start == 0
    store.tables(op=6, segment_bytes=SEGMENT, retention_ms=1000)
    settle(store)
    assert store.state().log_start == 10


def test_nothing_expires_while_the_clock_is_not_believed() -> None:
    store = opened(retention_ms=60_000)
    fill(store, 5)
    store.now.wall_us += 3600 * SECOND_US
    settle(store)
    assert (store.state().log_start, store.statistics().clock_uncertain) == (0, 1)
    lib.store_clock_confirm(store.store, store.now[0])
    settle(store)
    assert store.state().log_start == 5


# ---- purges and holds ----


def test_a_purge_is_answered_with_where_the_log_begins_and_may_be_repeated() -> None:
    store = opened()
    fill(store, 6)
    for _ in range(2):
        outcome = store.purge(3, version=44)
        assert (outcome.status, outcome.retained.log_start, outcome.retained.log_end) == (
            "OK",
            3,
            6,
        )
    assert store.purge(7).status == "OFFSET_BEYOND_END"
    assert store.purge(0).retained.log_start == 6
    assert [(one.cause, one.policy_version) for one in store.trimmed()] == [(3, 44), (3, 0)]
    assert store.purge(0, partition=1).status == "OK"


def test_what_is_held_outlives_its_policy_and_is_counted() -> None:
    store = opened(retention_ms=60_000)
    fill(store, 5)
    held = store.hold(90, from_offset=0)
    assert (held.status, held.retained.held_from, held.retained.intent) == ("OK", 0, 90)
    store.pass_time(2 * MINUTE_US)
    settle(store)
    state = store.state()
    assert (state.log_start, state.held, state.held_bytes) == (0, 1, state.bytes)
    assert store.statistics().held_bytes == state.bytes
    assert store.purge(2).status == "HELD"
    assert store.hold(89, held=False).status == "STALE_INTENT"
    assert store.hold(91, held=False).retained.held_from is None
    settle(store)
    assert store.state().log_start == 5
    assert store.statistics().held_bytes == 0


def test_a_hold_outlives_a_restart_with_and_without_a_checkpoint() -> None:
    for checkpointed in (False, True):
        disk = Disk()
        store = opened(disk, retention_ms=60_000)
        fill(store, 3)
        store.hold(90, from_offset=1)
        if checkpointed:
            lib.store_checkpoint_all(store.store)
            store.run()
        disk.power_cut()
        after = opened(disk, retention_ms=60_000)
        assert after.purge(2).status == "HELD"
        assert after.purge(1).status == "OK"


# ---- evidence ----


def test_an_event_is_handed_out_until_it_is_acknowledged() -> None:
    disk = Disk()
    store = opened(disk)
    fill(store, 8)
    store.purge(2)
    store.purge(4)
    assert [one.sequence for one in store.trimmed()] == [1, 2]
    assert store.trimmed() == []
    store.pass_time(6 * SECOND_US)
    assert [one.sequence for one in store.trimmed()] == [1, 2]
    store.ack_trim(1)
    disk.power_cut()
    after = opened(disk)
    assert [one.sequence for one in after.trimmed()] == [1, 2]
    after.ack_trim(2)
    after.purge(6)
    assert [one.sequence for one in after.trimmed()] == [3]
    disk.power_cut()
    assert [one.sequence for one in opened(disk).trimmed()] == [3]


def test_without_acknowledgements_the_log_keeps_more_and_goes_on_when_they_come() -> None:
    store = opened(retention_bytes=1500)
    for _ in range(14):
        fill(store, 2)
        settle(store)
    assert [one.sequence for one in store.trimmed()] == list(range(1, 9))
    before = store.state()
    assert before.bytes > 4 * SEGMENT
    assert store.statistics().trims_full > 0
    store.ack_trim(8)
    settle(store)
    assert store.state().log_start > before.log_start
    assert [one.sequence for one in store.trimmed()] == [9]


# ---- files ----


def lived(disk: Disk) -> Store:
    """Trimmed once, checkpointed, written to again."""
    store = opened(disk)
    fill(store, 8)
    store.purge(2)
    lib.store_checkpoint_all(store.store)
    store.run()
    fill(store, 4)
    return store


def copies(disk: Disk, store: Store) -> Iterator[Disk]:
    while store.turn() or lib.store_work(store.store):
        yield disk.copied()


@pytest.mark.parametrize("fate", ["kill", "power_cut", "crash"])
@pytest.mark.parametrize("log_start", [3, 6, 9, 12])
def test_a_crash_at_any_moment_leaves_a_whole_log_and_a_start_finishes_the_rest(
    fate: str, log_start: int
) -> None:
    disk = Disk()
    store = lived(disk)
    token = store.token()
    purge = [{"log_start": log_start, "version": 1}]
    assert lib.store_purge(store.store, store.id(), purge, token) == 0
    for copy in [disk.copied(), *copies(disk, store)]:
        getattr(copy, fate)()
        after = opened(copy)
        assert after.state().state == 1
        start = after.state().log_start
        assert start in (2, log_start)
        assert offsets(after) == list(range(start, 12))
        lib.store_checkpoint_all(after.store)
        settle(after)
        below = [base for base in files(copy) if base <= start]
        assert len(below) == (start < 12), "the segment that the log begins in, and none before it"
        sequences = [event.sequence for event in after.trimmed()]
        assert sequences == [1, 2][: 1 + (start == log_start)]
        assert after.append(client_part(1)).base_offset == 12
    assert store.outcomes[token].status == "OK"


def test_the_segment_that_a_start_would_append_to_stays_until_a_later_checkpoint() -> None:
    disk = Disk()
    store = lived(disk)
    active = max(base for base in files(disk) if base <= 7)
    store.purge(0)
    settle(store)
    assert files(disk) == [active]
    disk_now = disk.copied()
    disk_now.power_cut()
    assert opened(disk_now).state().log_start == 12
    store.pass_time(MINUTE_US)
    settle(store)
    settle(store)
    assert files(disk) == []
    disk.power_cut()
    assert opened(disk).append(client_part(1)).base_offset == 12


def test_a_segment_that_is_missing_without_a_trim_is_damage() -> None:
    disk = Disk()
    store = lived(disk)
    path = f"{FOLDER}/{files(disk)[0]:020d}.log"
    assert store.state().state == 1
    disk.power_cut()
    for index in range(disk.storage.names_count):
        if ffi.string(disk.storage.names[index].path) == path.encode():
            disk.storage.names[index].file = 0
    assert Store(disk, segment_bytes=SEGMENT).described() == 3


def test_unlinks_that_fail_are_tried_again() -> None:
    disk = Disk()
    store = opened(disk)
    fill(store, 8)
    disk.unlinks_fail = True
    store.purge(6)
    settle(store)
    assert 0 in files(disk)
    assert store.statistics().trim_failures > 0
    disk.unlinks_fail = False
    store.pass_time(2 * SECOND_US)
    settle(store)
    assert min(files(disk)) >= 5
    assert store.statistics().partitions_trimming == 0


def test_a_full_disk_is_helped_by_a_trim() -> None:
    disk = Disk()
    store = opened(disk)
    fill(store, 8)
    disk.storage.disk_full = 1
    for _ in range(4):
        store.produce(client_part(1, size=600))
    settle(store)
    store.purge(6)
    settle(store)
    assert min(files(disk)) >= 5


def test_a_topic_that_is_deleted_while_its_files_are_trimmed_leaves_whole() -> None:
    for turns in range(12):
        disk = Disk()
        store = opened(disk)
        fill(store, 8)
        token = store.token()
        lib.store_purge(store.store, store.id(), [{"log_start": 6, "version": 1}], token)
        for _ in range(turns):
            store.turn()
        assert store.tables(op=7, gone=True) == "OK"
        settle(store)
        assert files(disk) == []
        assert store.statistics().replicas_removing == 0
        assert store.statistics().partitions_trimming == 0


def test_chunks_that_a_trim_gave_back_are_free_once_a_checkpoint_has_it() -> None:
    store = opened(segments=48)
    for partition in range(2):
        while isinstance(token := store.produce(client_part(1, size=1600), partition), int):
            assert store.wait(token).status in {"OK", "METER_FULL"}
            if partition == 0 and store.state(0).log_end == 32:
                break
    assert store.produce(client_part(1, size=1600), 1) == "SEGMENT_POOL_FULL"
    store.purge(0)
    assert store.produce(client_part(1, size=1600), 1) == "SEGMENT_POOL_FULL"
    store.run()
    token = store.produce(client_part(1, size=1600), 1)
    assert isinstance(token, int)
    assert store.wait(token).status == "OK"
