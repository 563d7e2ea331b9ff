"""ring.c: bounded, in order, nothing lost, nothing overwritten; against a list."""

import struct
import threading
from collections import deque

from hypothesis import given
from hypothesis import strategies as st

from native._engine_sim import ffi, lib

HEADER = struct.Struct("<IHHIIQQ")


class Ring:
    def __init__(self, capacity: int, slot_size: int = 8) -> None:
        self.ring = ffi.new("struct ring *")
        self.memory = ffi.new("uint8_t[]", int(lib.ring_bytes(slot_size, capacity)))
        lib.ring_init(self.ring, self.memory, slot_size, capacity)

    def push(self, value: int) -> bool:
        return bool(lib.ring_push(self.ring, struct.pack("<Q", value)))

    def pop(self) -> int | None:
        slot = ffi.new("uint8_t[8]")
        return int.from_bytes(ffi.buffer(slot), "little") if lib.ring_pop(self.ring, slot) else None


class FrameRing:
    def __init__(self, capacity: int) -> None:
        self.ring = ffi.new("struct frame_ring *")
        self.memory = ffi.new("uint8_t[]", capacity)
        self.target = ffi.new("uint8_t[]", capacity)
        self.capacity = capacity
        lib.frame_ring_init(self.ring, self.memory, capacity)

    def push(self, slot: int, body: bytes, tail: bytes) -> bool:
        frame = ffi.new("struct engine_frame *")
        frame.size = 32 + len(body) + len(tail)
        frame.kind, frame.slot = 2, slot
        return bool(lib.frame_ring_push(self.ring, frame, body, len(body), tail, len(tail)))

    def take(self, size: int) -> list[tuple[int, bytes]]:
        taken = lib.frame_ring_take(self.ring, self.target, size)
        assert taken <= size
        data = bytes(ffi.buffer(self.target, taken))
        frames, at = [], 0
        while at < taken:
            length, _, _, slot, _, _, _ = HEADER.unpack_from(data, at)
            frames.append((slot, data[at + 32 : at + length]))
            padded = (length + 7) & ~7
            assert not any(data[at + length : at + padded])
            at += padded
        return frames


@given(st.lists(st.booleans(), max_size=200))
def test_a_ring_is_a_bounded_queue(pushes: list[bool]) -> None:
    ring, model, number = Ring(8), deque[int](), 0
    for push in pushes:
        if push:
            assert ring.push(number) == (len(model) < 8)
            if len(model) < 8:
                model.append(number)
            number += 1
        else:
            assert ring.pop() == (model.popleft() if model else None)
        assert lib.ring_used(ring.ring) == len(model)


@given(
    st.lists(
        st.one_of(
            st.tuples(st.binary(max_size=90), st.binary(max_size=40)),
            st.integers(min_value=0, max_value=256),
        ),
        max_size=80,
    )
)
def test_a_frame_ring_gives_back_whole_frames_in_order(
    steps: list[tuple[bytes, bytes] | int],
) -> None:
    ring, model, slot = FrameRing(256), deque[tuple[int, bytes]](), 0
    used = 0
    for step in steps:
        if isinstance(step, int):
            for frame in ring.take(step):
                assert frame == model.popleft()
                used -= (32 + len(frame[1]) + 7) & ~7
            continue
        body, tail = step
        padded = (32 + len(body) + len(tail) + 7) & ~7
        fits = used + padded <= 256
        assert ring.push(slot, body, tail) == fits
        if fits:
            model.append((slot, body + tail))
            used += padded
        assert lib.frame_ring_free(ring.ring) == 256 - used
        slot += 1
    assert ring.take(256) == list(model)


def test_a_frame_that_does_not_fit_the_target_stays() -> None:
    ring = FrameRing(1024)
    assert ring.push(1, b"a" * 100, b"")
    assert ring.take(64) == []
    assert ring.take(136) == [(1, b"a" * 100)]


def test_two_threads_lose_nothing_and_keep_the_order() -> None:
    ring, count = Ring(64), 20_000
    seen: list[int] = []

    def consume() -> None:
        while len(seen) < count:
            value = ring.pop()
            if value is not None:
                seen.append(value)

    consumer = threading.Thread(target=consume)
    consumer.start()
    for number in range(count):
        while not ring.push(number):
            pass
    consumer.join()
    assert seen == list(range(count))
