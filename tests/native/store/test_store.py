"""store/: a shard's journal, groups and partitions together, on a simulated disk."""

from __future__ import annotations

import struct

import pytest

from native._engine_sim import ffi, lib
from tests.support.builders.storage import client_part, name
from tests.support.builders.store import REVISION, TOPIC, Disk, Store, folder_of


def opened(disk: Disk | None = None, *, extents: int = 8, segment_bytes: int = 1 << 20) -> Store:
    store = Store(disk or Disk(), extents=extents, segment_bytes=segment_bytes)
    assert store.status == "OK", store.detail
    return store


def test_an_accepted_batch_is_answered_only_after_its_round_is_durable() -> None:
    store = opened()
    token = store.produce(client_part(2))
    assert isinstance(token, int)
    lib.store_flush(store.store, store.now[0])
    store._drain()
    assert token not in store.outcomes
    store.run()
    outcome = store.outcomes[token]
    assert (outcome.status, outcome.base_offset, outcome.record_count) == ("OK", 0, 2)


def test_offsets_are_contiguous_and_bytes_come_back() -> None:
    store = opened()
    parts = [client_part(count, size=50 * count) for count in (1, 3, 2, 5)]
    bases = [store.append(part).base_offset for part in parts]
    assert bases == [0, 1, 4, 6]
    assert [batch[96:] for batch in store.log()] == parts
    assert store.read(11) == b""
    assert store.read(12) == "OFFSET_OUT_OF_RANGE"


def test_what_was_acknowledged_survives_a_crash() -> None:
    disk = Disk()
    store = opened(disk)
    for index in range(20):
        store.append(client_part(1, size=100 + index), index % 3)
    before = [store.log(partition) for partition in range(3)]
    disk.crash()
    after = opened(disk)
    assert [after.log(partition) for partition in range(3)] == before


def test_many_calls_share_one_sync() -> None:
    store = opened()
    tokens = [store.produce(client_part(1, size=20), index % 4) for index in range(40)]
    rounds = store.statistics().rounds
    store.run()
    assert all(token in store.outcomes for token in tokens)
    assert store.statistics().rounds - rounds == 1


def test_a_repeated_batch_gets_its_first_offset() -> None:
    disk = Disk()
    store = opened(disk)
    part = client_part(2, producer=b"seven".ljust(16, b"-"), sequence=0)
    assert store.append(part).base_offset == 0
    again = store.append(part)
    assert (again.status, again.base_offset, again.duplicate) == ("OK", 0, True)
    disk.crash()
    store = opened(disk)
    later = store.append(part)
    assert (later.base_offset, later.duplicate) == (0, True)
    assert len(store.log()) == 1


def test_a_gap_in_a_producers_sequence_is_named() -> None:
    store = opened()
    store.append(client_part(2, producer=b"seven".ljust(16, b"-"), sequence=0))
    outcome = store.append(client_part(1, producer=b"seven".ljust(16, b"-"), sequence=5))
    assert (outcome.status, outcome.expected) == ("OUT_OF_SEQUENCE", 2)


def test_unknown_partitions_and_old_revisions_are_refused() -> None:
    store = opened()
    assert store.produce(client_part(1), 9) == "NOT_FOUND"
    result = ffi.new("struct store_fetch *")
    lib.store_fetch(store.store, store.id(0, revision=REVISION + 1), 0, 100, 0, 0, result)
    assert name(result.status) == "RECREATED"
    lib.store_fetch(store.store, store.id(0, topic=99), 0, 100, 0, 0, result)
    assert name(result.status) == "TOPIC_NOT_FOUND"


def test_a_partition_without_records_has_no_file_and_reads_empty() -> None:
    disk = Disk()
    store = opened(disk)
    assert store.read(0) == b""
    assert store.read(1) == "OFFSET_OUT_OF_RANGE"
    assert store.statistics().replicas_live == 1  # the metadata group
    store.append(client_part(1))
    store.run()
    assert disk.exists(f"{folder_of()}/{0:020d}.log")


def test_append_times_grow_when_the_clock_stands() -> None:
    store = opened()
    times = [store.append(client_part(1)).append_time_us for _ in range(3)]
    assert times == [times[0], times[0] + 1, times[0] + 2]


def test_a_leaping_clock_is_not_believed_until_it_is_confirmed() -> None:
    store = opened()
    first = store.append(client_part(1)).append_time_us
    store.now.wall_us += 3_600_000_000
    lib.store_tick(store.store, store.now[0])
    assert store.append(client_part(1)).append_time_us == first + 1
    lib.store_clock_confirm(store.store, store.now[0])
    assert store.append(client_part(1)).append_time_us == store.now.wall_us


@pytest.mark.parametrize("leap_us", [-7_200_000_000, 7_200_000_000])
@pytest.mark.parametrize("confirmed", [False, True])
def test_windows_close_on_time_though_the_wall_clock_leapt(leap_us: int, confirmed: bool) -> None:
    store = opened()
    store.append(client_part(1))
    store.pass_time(2_000_000)
    store.run()
    assert len(closes(store)) == 1
    assert lib.store_meter_ack(store.store, store.id(), 1) == 0
    assert store.statistics().clock_uncertain == 0
    store.now.wall_us += leap_us
    store.pass_time(1)
    assert store.statistics().clock_uncertain == 1
    if confirmed:
        lib.store_clock_confirm(store.store, store.now[0])
        assert store.statistics().clock_uncertain == 0
    for sequence in range(2, 6):
        store.append(client_part(1))
        store.pass_time(1_100_000)
        store.run()
        assert [close[0] for close in closes(store)] == [sequence]
        assert lib.store_meter_ack(store.store, store.id(), sequence) == 0


def test_windows_close_after_a_start_whose_clock_is_behind_the_log() -> None:
    disk = Disk()
    store = opened(disk)
    store.now.wall_us += 7_200_000_000
    lib.store_clock_confirm(store.store, store.now[0])
    store.append(client_part(1))
    disk.crash()
    after = opened(disk)
    after.pass_time(1)
    assert after.statistics().clock_uncertain == 1
    after.pass_time(1_100_000)
    after.run()
    assert len(closes(after)) == 1


def test_a_full_disk_refuses_writes_and_recovers_by_itself() -> None:
    disk = Disk()
    store = opened(disk)
    disk.storage.disk_full = 1
    accepted = store.append(client_part(1, size=500))
    assert accepted.status == "OK"  # it is in the journal, which is preallocated
    store.run()
    assert store.produce(client_part(1)) == "STORAGE_FULL"
    assert len(store.log()) == 1
    disk.storage.disk_full = 0
    store.pass_time(1_000_000)
    assert store.append(client_part(1)).base_offset == 1
    store.run()
    disk.crash()
    assert len(opened(disk).log()) == 2


def test_segments_roll_and_old_ones_are_read_from_files() -> None:
    disk = Disk()
    store = opened(disk, segment_bytes=4000)
    parts = [client_part(1, size=700 + index) for index in range(30)]
    for part in parts:
        store.append(part)
    store.run()
    assert store.statistics().segments_sealed > 3
    assert [batch[96:] for batch in store.log()] == parts
    disk.crash()
    assert [batch[96:] for batch in opened(disk, segment_bytes=4000).log()] == parts


def test_a_shard_without_room_for_segments_refuses_and_starts_again() -> None:
    disk = Disk()
    store = Store(disk, segment_bytes=1, segments=96)
    refused: set[str] = set()
    for index in range(300):
        token = store.produce(client_part(1), index % 4)
        if isinstance(token, str):
            refused.add(token)
        if index % 40 == 39:
            store.run()
    store.run()
    assert refused == {"SEGMENT_POOL_FULL"}
    assert {outcome.status for outcome in store.outcomes.values()} == {"OK"}
    ends = [len(store.log(partition)) for partition in range(4)]
    assert sum(ends) > 48
    disk.crash()
    assert Store(disk, segment_bytes=1, segments=16).status == "NO_MEMORY"  # and no damage
    after = Store(disk, segment_bytes=1, segments=96)
    assert after.status == "OK", after.detail
    assert [len(after.log(partition)) for partition in range(4)] == ends


def test_extents_are_given_back_while_writing_goes_on() -> None:
    disk = Disk()
    store = opened(disk)
    written = 0
    for index in range(300):
        part = client_part(1, size=3000)
        while isinstance(token := store.produce(part, index % 4), str):
            assert token == "BUSY"
            store.turn()
        written += len(part)
    store.run()
    assert written > 8 * 65536
    assert store.statistics().extents_released > 3
    disk.crash()
    after = opened(disk)
    assert sum(len(after.log(partition)) for partition in range(4)) == 300


def attempt(store: Store, offset: int, bytes_max: int) -> tuple[int, bytes]:
    """One read of a fetch from a file: how much was read, and the batches found."""
    result = ffi.new("struct store_fetch *")
    lib.store_fetch(store.store, store.id(), offset, bytes_max, 0, 0, result)
    assert (name(result.status), result.place) == ("OK", 2)
    data = store._read_file(result.file, result.file_offset, result.size)
    begin, end = ffi.new("size_t *"), ffi.new("size_t *")
    status = lib.store_fetch_trim(
        store.store, store.id(), offset, bytes_max, data, len(data), begin, end
    )
    assert name(status) == "OK"
    return len(data), data[begin[0] : end[0]]


def arrive(store: Store, offset: int, bytes_max: int) -> list[int]:
    """Sizes of the reads until the batch of ``offset`` was found."""
    sizes: list[int] = []
    while len(sizes) < 200:
        size, found = attempt(store, offset, bytes_max)
        sizes.append(size)
        if found:
            assert int.from_bytes(found[16:24], "little") == offset
            return sizes
    raise AssertionError("the fetch never arrives")


def produced(store: Store, sizes: list[int], partition: int = 0) -> None:
    for size in sizes:
        part = client_part(1, size=size)
        while isinstance(token := store.produce(part, partition), str):
            assert token == "BUSY"
            store.turn()
    store.run()


def test_a_lagging_fetch_arrives_though_the_index_has_no_memory() -> None:
    disk = Disk()
    store = Store(disk, segment_bytes=1 << 24, index_blocks=1, fetch_way_bytes=4096)
    produced(store, [30_000] * 50, partition=1)  # takes the one block
    produced(store, [30_000] * 100)
    reads = [arrive(store, offset, 8192) for offset in (1, 33, 40, 47, 55)]
    assert max(len(sizes) for sizes in reads) > 4
    assert max(max(sizes) for sizes in reads) < 32_768  # a batch, never the way to it
    disk.crash()
    after = Store(disk, segment_bytes=1 << 24, index_blocks=1, fetch_way_bytes=4096)
    assert len(arrive(after, 33, 8192)) < 200


def test_a_batch_larger_than_a_read_costs_one_more_and_no_later_read_is_larger() -> None:
    store = Store(Disk(), extent_bytes=1 << 19, prepares_bytes=1 << 21)
    produced(store, [200_000] + [1000] * 200 + [30_000] * 100)
    size = len(client_part(1, size=200_000)) + 96
    assert arrive(store, 0, 4096) == [4096 + 65536, size]
    assert max(arrive(store, 20, 4096)) <= 4096 + 65536


def test_a_final_checkpoint_leaves_little_to_replay() -> None:
    disk = Disk()
    store = opened(disk)
    for index in range(10):
        store.append(client_part(1), index % 4)
    lib.store_checkpoint_all(store.store)
    store.run()
    assert lib.store_idle(store.store)
    assert store.statistics().checkpoints == 4
    disk.crash()
    after = opened(disk)
    assert after.statistics().produce_batches == 0
    assert [len(after.log(partition)) for partition in range(4)] == [3, 3, 2, 2]


def test_groups_that_take_turns_propose_one_in_flight_each() -> None:
    store = opened()
    store.append(client_part(1))
    for group in (3, 4):
        store.fence(2, group, 1, 40)
    before = store.statistics().entries
    for _ in range(5):
        for group in (3, 4):
            assert name(store.fetch(0, group=group, generation=1).status) == "GROUP_PENDING"
    assert store.statistics().entries - before == 2
    store.run()
    for group in (3, 4):
        assert name(store.fetch(0, group=group, generation=1).status) == "OK"


def test_a_group_commits_under_its_generation_only() -> None:
    disk = Disk()
    store = opened(disk)
    for _ in range(5):
        store.append(client_part(1))
    assert store.commit(3, 0, 2).committed == 2
    closed = store.fence(2, 3, 1, 40)
    assert (closed.status, closed.generation, closed.committed) == ("OK", 1, 2)
    assert store.commit(3, 0, 4).status == "FENCED"
    assert store.commit(3, 1, 4).status == "OK"
    assert store.commit(3, 1, 6).status == "OFFSET_BEYOND_END"
    disk.crash()
    state = ffi.new("struct engine_group_state *")
    after = opened(disk)
    assert lib.store_group_state(after.store, after.id(0), 3, state) == 0
    assert (state.generation, state.committed) == (1, 4)


def test_the_first_fetch_of_a_generation_waits_until_it_is_in_the_log() -> None:
    store = opened()
    store.append(client_part(1))
    store.fence(2, 3, 1, 40)
    store.advanced.clear()
    assert name(store.fetch(0, group=3, generation=1).status) == "GROUP_PENDING"
    assert name(store.fetch(0, group=3, generation=1).status) == "GROUP_PENDING"
    store.run()
    assert (TOPIC, 0) in store.advanced
    assert name(store.fetch(0, group=3, generation=1).status) == "OK"
    store.fence(1, 3, 2, 41)
    assert name(store.fetch(0, group=3, generation=1).status) == "FENCED"


def closes(store: Store) -> list[tuple[int, int, int, int]]:
    close = ffi.new("struct engine_meter_close *")
    sums = ffi.new("struct engine_meter_sum[128]")
    found = []
    while lib.store_meter_next(store.store, close, sums, 128):
        total = sum(sums[index].ingress_bytes for index in range(close.sums_count))
        found.append((close.sequence, close.from_op, close.to_op, total))
    return found


def test_windows_close_by_themselves_and_add_up_to_the_log() -> None:
    disk = Disk()
    store = opened(disk)
    for principal in (16, 17, 16):
        store.append(client_part(1, size=300), principal=principal)
    store.pass_time(2_000_000)
    store.run()
    found = closes(store)
    assert [close[0] for close in found] == [1]
    assert found[0][3] == sum(len(batch) for batch in store.log())
    assert closes(store) == []
    store.pass_time(5_000_000)
    assert closes(store) == found  # not acknowledged: once more
    assert lib.store_meter_ack(store.store, store.id(0), 1) == 0
    store.pass_time(6_000_000)
    assert closes(store) == []


def test_a_flush_closes_the_window_now() -> None:
    store = opened()
    store.append(client_part(1))
    token = store.token()
    assert lib.store_meter_flush(store.store, store.id(0), token) == 0
    assert store.wait(token).base_offset == 1
    assert len(closes(store)) == 1


def test_system_topics_are_never_metered() -> None:
    store = Store(Disk(), metered=False)
    store.append(client_part(1))
    store.pass_time(3_000_000)
    store.run()
    assert closes(store) == []


def submit(store: Store, command: bytes) -> int:
    token = store.token()
    assert lib.store_metadata_submit(store.store, command, len(command), token) == 0
    return token


def handed(store: Store) -> list[tuple[int, bytes]]:
    op, at = ffi.new("uint64_t *"), ffi.new("int64_t *")
    command, size = ffi.new("const uint8_t **"), ffi.new("size_t *")
    found = []
    while lib.store_metadata_next(store.store, op, at, command, size):
        found.append((op[0], bytes(ffi.buffer(command[0], size[0]))))
    return found


def test_metadata_ops_are_handed_out_in_order_and_answered_with_their_result() -> None:
    store = opened()
    tokens = [submit(store, b"command %d" % index) for index in range(3)]
    store.run()
    assert handed(store) == [(1, b"command 0"), (2, b"command 1"), (3, b"command 2")]
    assert tokens[0] not in store.outcomes
    for op in (1, 2, 3):
        result = b"result %d" % op
        assert lib.store_metadata_applied(store.store, op, result, len(result)) == 0
    store._drain()
    assert [store.outcomes[token].body for token in tokens] == [
        b"result 1",
        b"result 2",
        b"result 3",
    ]


def test_metadata_ops_are_handed_out_again_after_a_crash() -> None:
    disk = Disk()
    store = opened(disk)
    for index in range(5):
        submit(store, b"command %d" % index)
    store.run()
    disk.crash()
    after = opened(disk)
    op, last = ffi.new("uint64_t *"), ffi.new("uint64_t *")
    snapshot, size = ffi.new("const uint8_t **"), ffi.new("size_t *")
    lib.store_metadata_recovery(after.store, op, snapshot, size, last)
    assert (op[0], size[0], last[0]) == (0, 0, 5)
    assert [command for _, command in handed(after)] == [b"command %d" % i for i in range(5)]


def test_a_snapshot_stands_for_the_ops_below_it() -> None:
    disk = Disk()
    store = opened(disk, extents=12)
    due = ffi.new("uint64_t *")
    for index in range(1030):
        submit(store, struct.pack("<Q", index))
        store.run()
        for op, _ in handed(store):
            if lib.store_metadata_snapshot_due(store.store, due):
                assert due[0] == op == 1024
            assert lib.store_metadata_applied(store.store, op, b"", 0) == 0
            if due[0] == op:
                assert lib.store_metadata_snapshot(store.store, op, b"the state", 9) == 0
    store.run()
    disk.crash()
    after = opened(disk, extents=12)
    op, last = ffi.new("uint64_t *"), ffi.new("uint64_t *")
    snapshot, size = ffi.new("const uint8_t **"), ffi.new("size_t *")
    lib.store_metadata_recovery(after.store, op, snapshot, size, last)
    assert (op[0], last[0]) == (1024, 1030)
    assert bytes(ffi.buffer(snapshot[0], size[0])) == b"the state"
    lib.store_metadata_recovered(after.store)
    assert [op for op, _ in handed(after)] == list(range(1025, 1031))


def test_a_topic_that_goes_takes_its_files_with_it() -> None:
    disk = Disk()
    store = opened(disk)
    store.append(client_part(1))
    store.run()
    path = f"{folder_of()}/{0:020d}.log"
    assert disk.exists(path)
    assert store.tables(op=7, gone=True) == "OK"
    store.run()
    assert not disk.exists(path)
    assert store.produce(client_part(1)) == "TOPIC_NOT_FOUND"
    disk.crash()
    after = Store(disk, topic=False)
    assert after.statistics().replicas_live == 1


def test_a_snapshot_that_was_refused_is_asked_for_again() -> None:
    store = opened(Disk(), extents=12)
    due = ffi.new("uint64_t *")
    for index in range(1024):
        submit(store, struct.pack("<Q", index))
        store.run()
        for op, _ in handed(store):
            assert lib.store_metadata_applied(store.store, op, b"", 0) == 0
    assert lib.store_metadata_snapshot_due(store.store, due)
    assert not lib.store_metadata_snapshot_due(store.store, due)
    too_large = lib.store_metadata_snapshot(store.store, due[0], ffi.NULL, 1 << 40)
    assert ffi.string(lib.status_name(too_large)).decode() == "MESSAGE_TOO_LARGE"
    assert lib.store_metadata_snapshot_due(store.store, due)
    assert lib.store_metadata_snapshot(store.store, due[0], b"the state", 9) == 0
