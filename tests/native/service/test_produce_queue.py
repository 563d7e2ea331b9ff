"""produce_queue.c: who finds room among the batches that wait for the store."""

from hypothesis import given
from hypothesis import strategies as st

from native._engine_sim import ffi, lib

POOL_BYTES = 64 << 20
ROOM_BYTES = POOL_BYTES // 4
SHARE_BYTES = ROOM_BYTES // 100 * 75


class Waiting:
    def __init__(self) -> None:
        self.queue = ffi.new("struct produce_queue *")

    def put(self, principal: int, size: int) -> bool:
        if not lib.produce_queue_fits(self.queue, POOL_BYTES, principal, size):
            return False
        self.queue.count += 1
        self.queue.bytes += size
        self.queue.bytes_of[principal % 64] += size
        return True


def test_one_principal_gets_three_quarters_and_another_finds_the_rest() -> None:
    waiting = Waiting()
    while waiting.put(16, 200_000):
        pass
    assert SHARE_BYTES - 200_000 < waiting.queue.bytes <= SHARE_BYTES
    before = waiting.queue.bytes
    while waiting.put(17, 200_000):
        pass
    assert waiting.queue.bytes - before > ROOM_BYTES // 4 - 200_000


def test_a_batch_above_its_principals_share_is_let_in_when_none_of_its_waits() -> None:
    waiting = Waiting()
    assert waiting.put(16, SHARE_BYTES + 1)
    assert not waiting.put(16, 1)
    assert waiting.put(17, 1)


def test_a_queue_of_small_batches_ends_by_their_number() -> None:
    waiting = Waiting()
    while waiting.put(16 + waiting.queue.count % 40, 1):
        pass
    assert waiting.queue.count == 16384


@given(st.lists(st.tuples(st.integers(2, 300), st.integers(1, 8 << 20)), max_size=60))
def test_the_room_is_never_exceeded(puts: list[tuple[int, int]]) -> None:
    waiting = Waiting()
    for principal, size in puts:
        waiting.put(principal, size)
    assert waiting.queue.bytes <= ROOM_BYTES
