"""The crash-point sweep (R2): one scripted run of a store, ended before every single request to its
disk, as a process ends and as a machine ends.

Whatever the point: both boots succeed, the second finds what the first left and changes nothing,
what was acknowledged is there, where it was said to be, and the store goes on.
"""

from collections import Counter
from collections.abc import Callable, Sequence

import pytest

from headrace import codec
from native._engine_sim import ffi, lib
from tests.support.builders.store import Disk, Store

EXTENTS = 7
SEGMENT_BYTES = 40_000
PARTITIONS = 2
GROUP, GENERATION, CLOSE = 5, 1, 2
ENDS: Sequence[Callable[[Disk], None]] = (Disk.power_cut, Disk.kill, Disk.crash)
POINTS_MIN = {lib.IO_WRITE_SYNC: 80, lib.IO_WRITE: 50, lib.IO_SYNC: 5, lib.IO_OPEN: 5}


def part(number: int, size: int = 3000) -> bytes:
    record = codec.Record(None, number.to_bytes(4, "big") * (size // 4), 1_000_000 + number)
    return codec.encode([record])


def boot(disk: Disk, *, topic: bool = True) -> Store:
    store = Store(disk, extents=EXTENTS, segment_bytes=SEGMENT_BYTES, topic=topic)
    assert store.status == "OK", store.detail
    return store


class Swept(Store):
    """A store whose every request is first played as a crash, on a copy of the disk."""

    def __init__(self) -> None:
        self.points: Counter[int] = Counter()
        self.acked: list[tuple[int, int, bytes]] = []
        self.committed = 0
        self.checks = 0
        self.swept = True
        super().__init__(Disk(), extents=EXTENTS, segment_bytes=SEGMENT_BYTES)

    def turn(self) -> bool:
        lib.store_flush(self.store, self.now[0])
        head = self.disk.storage.queue_head
        if head and self.swept:
            self.points[head.operation] += 1
            number = self.points.total()
            # Rounds are many and alike: one end each, in turn; everything else ends in every way.
            alike = head.operation in (lib.IO_WRITE_SYNC, lib.IO_WRITE)
            for end in ENDS[number % 3 :][:1] if alike else ENDS:
                copy = self.disk.copied()
                lib.random_init(ffi.addressof(copy.storage, "random"), number)
                end(copy)
                self.check(copy)
        return super().turn()

    def check(self, disk: Disk) -> None:
        """Recovery is a function of the bytes, and loses nothing."""
        self.checks += 1
        boot(disk, topic=False)
        left = disk.digest()
        # What a recovery read and did not make durable must not be what it answers with.
        disk.power_cut()
        boot(disk, topic=False)
        assert disk.digest() == left
        store = boot(disk)
        logs = {partition: stored(store, partition) for partition in range(PARTITIONS)}
        for partition, base_offset, batch in self.acked:
            assert logs[partition][base_offset] == batch
        state = ffi.new("struct engine_group_state *")
        if self.committed:
            assert lib.store_group_state(store.store, store.id(0), GROUP, state) == 0
            assert state.committed >= self.committed
        assert store.append(part(0, 40)).status == "OK"

    def put(self, number: int) -> None:
        """Produce to a partition, and remember what was said."""
        partition, batch = number % PARTITIONS, part(number)
        outcome = self.append(batch, partition)
        assert outcome.status == "OK"
        self.acked.append((partition, outcome.base_offset, batch))

    def note(self, offset: int) -> None:
        """Commit an offset, and remember what was said."""
        assert self.commit(GROUP, GENERATION, offset).status == "OK"
        self.committed = offset


def stored(store: Store, partition: int) -> dict[int, bytes]:
    """Client parts by base offset."""
    return {int.from_bytes(b[16:24], "little"): b[96:] for b in store.log(partition)}


def script(store: Swept, batches: int) -> None:
    assert store.fence(CLOSE, GROUP, GENERATION, 10).status == "OK"
    for number in range(batches):
        store.put(number)
        if number % 20 == 19:
            store.note(number // PARTITIONS)
            store.pass_time(2_000_000)  # windows close


@pytest.mark.check
def test_every_point_of_a_run_is_survived() -> None:
    store = Swept()
    script(store, 90)
    lib.store_checkpoint_all(store.store)
    store.run()
    for operation, wanted in POINTS_MIN.items():
        assert store.points[operation] >= wanted, store.points
    assert store.checks > store.points.total()
    assert store.statistics().extents_released > 0
    assert store.statistics().segments_sealed > 0


@pytest.mark.check
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("batches", [0, 30])
def test_every_point_of_a_boot_is_survived(batches: int, end: Callable[[Disk], None]) -> None:
    store = Swept()
    store.swept = False
    script(store, batches)
    # The first boot of all formats; a later one rewrites what it found.
    disk = store.disk if batches else Disk()
    if batches:
        end(disk)
    else:
        store.acked, store.committed = [], 0
    points = 0
    while True:
        copy = disk.copied()
        copy.storage.crash_at = copy.storage.requests + points + 1
        died = Store(copy, extents=EXTENTS, segment_bytes=SEGMENT_BYTES, topic=False)
        if died.status == "OK":
            break
        points += 1
        end(copy)
        store.check(copy)
    assert points >= 5
