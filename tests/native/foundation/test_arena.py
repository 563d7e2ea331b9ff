"""arena.c: aligned, zero, bounded, sealed."""

import subprocess
import sys

from native._engine_sim import ffi, lib
from tests.support.builders.storage import Arena


def test_taken_memory_is_aligned_and_zero() -> None:
    arena = Arena(1 << 16)
    for size in (1, 63, 64, 65, 4096):
        memory = lib.arena_take(arena.arena, size)
        assert int(ffi.cast("uintptr_t", memory)) % 64 == 0
        assert bytes(ffi.buffer(memory, size)) == bytes(size)
    page = lib.arena_take_aligned(arena.arena, 100, 4096)
    assert int(ffi.cast("uintptr_t", page)) % 4096 == 0


def test_an_arena_that_is_used_up_says_so() -> None:
    arena = Arena(4096)
    assert lib.arena_take(arena.arena, 4000) != ffi.NULL
    assert lib.arena_take(arena.arena, 100) == ffi.NULL
    assert lib.arena_left(arena.arena) == 64
    assert lib.arena_take(arena.arena, 64) != ffi.NULL


def test_taking_after_the_seal_stops_the_process() -> None:
    script = """
from native._engine_sim import ffi, lib
arena = ffi.new("struct arena *")
lib.arena_open(arena, 4096)
lib.arena_seal(arena)
lib.arena_take(arena, 1)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == -6
    assert "assertion failed: arena->state == ARENA_TAKING" in done.stderr
