"""io_file.c: the plain backend, with O_DIRECT and without, on a thread and before it."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from native._engine_sim import ffi, lib

OPEN, CLOSE, READ, WRITE, WRITE_SYNC, SYNC, TRUNCATE, ZERO, SIZE = range(1, 10)
RENAME, UNLINK, MKDIR, SYNC_DIR, LIST = range(10, 15)
CREATE, EXCLUSIVE, DIRECT = 1, 2, 4
BLOCK = 4096


class Request(Protocol):
    operation: int
    file: int
    size: int
    buffer: object
    status: int
    result_bytes: int


class Files:
    """An io_file over a folder; requests are performed at once, or submitted to its thread."""

    def __init__(self, folder: Path, *, direct: bool) -> None:
        self.arena = ffi.new("struct arena *")
        assert lib.arena_open(self.arena, lib.io_file_memory_bytes() + (1 << 20)) == 0
        self.wake = ffi.new("struct wake *")
        assert lib.wake_open(self.wake) == 0
        self.file = ffi.new("struct io_file *")
        root = str(folder).encode()
        assert lib.io_file_open(self.file, self.arena, root, direct, self.wake) == 0
        self.memory = ffi.new("uint8_t[]", 64 * BLOCK)
        first = int(ffi.cast("uintptr_t", self.memory))
        self.buffer = self.memory + (-first % BLOCK)
        self.threaded = False

    def start(self) -> None:
        assert lib.io_file_start(self.file) == 0
        self.threaded = True

    def submit(self, operation: int, slot: int = 0, **fields: str | int | bytes) -> Request:
        request: Request = ffi.new("struct io_request *")
        request.operation, request.file = operation, slot
        data = fields.pop("data", None)
        for name, value in fields.items():
            setattr(request, name, value.encode() if isinstance(value, str) else value)
        if isinstance(data, bytes):
            ffi.memmove(self.buffer, data, len(data))
            request.size = len(data)
        request.buffer = self.buffer
        io = self.file.io
        if self.threaded:
            io.submit(io.context, request)
        else:
            io.perform(io.context, request)
        return request

    def finished(self) -> Request:
        while True:
            lib.wake_announce(self.wake)
            request: Request = lib.io_file_completed(self.file)
            if request != ffi.NULL:
                lib.wake_settle(self.wake)
                return request
            lib.io_file_flush(self.file)
            lib.wake_wait(self.wake)

    def do(self, operation: int, slot: int = 0, **fields: str | int | bytes) -> tuple[str, int]:
        request = self.submit(operation, slot, **fields)
        if self.threaded:
            assert self.finished() == request
        return ffi.string(lib.status_name(request.status)).decode(), int(request.result_bytes)

    def read(self, slot: int, offset: int, size: int) -> bytes:
        status, count = self.do(READ, slot, offset=offset, size=size)
        assert status == "OK"
        return bytes(ffi.buffer(self.buffer, count))

    def close(self) -> None:
        lib.io_file_stop(self.file)
        lib.io_file_close(self.file)
        lib.wake_close(self.wake)
        lib.arena_close(self.arena)


@pytest.fixture(params=["direct", "plain"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Files]:
    made = Files(tmp_path / "shard", direct=request.param == "direct")
    yield made
    made.close()


@pytest.fixture(params=["performed", "threaded"])
def either(request: pytest.FixtureRequest, files: Files) -> Files:
    if request.param == "threaded":
        files.start()
    return files


def test_what_is_written_is_read(either: Files) -> None:
    assert either.do(OPEN, 3, path="a", flags=CREATE | DIRECT) == ("OK", 0)
    assert either.do(WRITE_SYNC, 3, offset=BLOCK, data=b"x" * BLOCK) == ("OK", BLOCK)
    assert either.do(WRITE, 3, offset=10, data=b"hello") == ("OK", 5)
    assert either.do(SYNC, 3)[0] == "OK"
    assert either.do(SIZE, 3) == ("OK", 2 * BLOCK)
    assert either.read(3, 8, 9) == b"\0\0hello\0\0"
    assert either.read(3, 2 * BLOCK - 3, 100) == b"xxx"
    assert either.do(CLOSE, 3)[0] == "OK"
    assert either.do(READ, 3, size=1)[0] == "FILE_NOT_FOUND"


def test_opening_says_what_is_wrong(either: Files) -> None:
    assert either.do(OPEN, 0, path="absent")[0] == "FILE_NOT_FOUND"
    assert either.do(OPEN, 0, path="a", flags=CREATE | EXCLUSIVE)[0] == "OK"
    assert either.do(OPEN, 1, path="a", flags=CREATE | EXCLUSIVE)[0] == "FILE_EXISTS"


def test_zeroing_extends_and_truncating_cuts(either: Files) -> None:
    either.do(OPEN, 0, path="a", flags=CREATE | DIRECT)
    either.do(WRITE, 0, data=b"y" * 100)
    assert either.do(ZERO, 0, offset=50, size=3 * 1024 * 1024)[0] == "OK"
    assert either.do(SIZE, 0) == ("OK", 50 + 3 * 1024 * 1024)
    assert either.read(0, 48, 4) == b"yy\0\0"
    assert either.do(TRUNCATE, 0, size=49)[0] == "OK"
    assert either.do(SIZE, 0) == ("OK", 49)


def test_folders_are_made_listed_in_order_and_synced(either: Files) -> None:
    assert either.do(LIST, path="t/20", size=16 * BLOCK) == ("OK", 0)
    assert either.do(MKDIR, path="t/20")[0] == "OK"
    assert either.do(MKDIR, path="t/20")[0] == "OK"
    for slot, name in enumerate(("b.log", "a.log", "c.log")):
        either.do(OPEN, slot, path=f"t/20/{name}", flags=CREATE)
    assert either.do(SYNC_DIR, path="t/20")[0] == "OK"
    status, size = either.do(LIST, path="t/20", size=16 * BLOCK)
    assert status == "OK"
    assert bytes(ffi.buffer(either.buffer, size)) == b"a.log\0b.log\0c.log\0"
    assert either.do(LIST, path="t/20", size=4)[0] == "BUFFER_SHORT"
    assert either.do(RENAME, path="t/20/a.log", path_to="t/20/b.log")[0] == "OK"
    assert either.do(UNLINK, path="t/20/c.log")[0] == "OK"
    assert either.do(UNLINK, path="t/20/c.log")[0] == "OK"
    _, size = either.do(LIST, path="t/20", size=16 * BLOCK)
    assert bytes(ffi.buffer(either.buffer, size)) == b"b.log\0"
    assert either.do(UNLINK, path="t/20")[0] == "IO_FAILED"  # not empty
    assert either.do(UNLINK, path="t/20/b.log")[0] == "OK"
    assert either.do(UNLINK, path="t/20")[0] == "OK"
    assert either.do(SYNC_DIR, path="t/20")[0] == "FILE_NOT_FOUND"
    assert either.do(UNLINK, path="t/20")[0] == "OK"


def test_a_gathered_write_is_one_run_of_bytes(either: Files) -> None:
    either.do(OPEN, 0, path="a", flags=CREATE)
    parts = [ffi.new("uint8_t[]", bytes([index]) * (index + 1)) for index in range(16)]
    request = ffi.new("struct io_request *")
    request.operation, request.file, request.offset = WRITE, 0, 5
    request.vectors_count = 16
    for index, part in enumerate(parts):
        request.vectors[index].data, request.vectors[index].size = part, index + 1
    io = either.file.io
    if either.threaded:
        io.submit(io.context, request)
        assert either.finished() == request
    else:
        io.perform(io.context, request)
    assert (request.status, request.result_bytes) == (0, 136)
    wanted = b"".join(bytes([index]) * (index + 1) for index in range(16))
    assert either.read(0, 5, 136) == wanted


def test_a_failed_sync_poisons_the_file_until_it_is_closed(files: Files, tmp_path: Path) -> None:
    # A pipe end cannot be synced: fdatasync fails for real, without a mock.
    os.mkfifo(tmp_path / "shard" / "pipe")
    assert files.do(OPEN, 7, path="pipe")[0] == "OK"
    assert files.do(SYNC, 7)[0] == "IO_FAILED"
    assert files.do(WRITE, 7, data=b"x")[0] == "IO_POISONED"
    assert files.do(SYNC, 7)[0] == "IO_POISONED"
    assert files.do(CLOSE, 7)[0] == "OK"
    assert files.do(OPEN, 7, path="other", flags=CREATE)[0] == "OK"
    assert files.do(SYNC, 7)[0] == "OK"


def test_requests_are_carried_out_in_order_even_beyond_the_ring(files: Files) -> None:
    files.start()
    requests = [files.submit(OPEN, 0, path="a", flags=CREATE)]
    requests += [files.submit(WRITE, 0, offset=index, data=b"z") for index in range(2500)]
    requests.append(files.submit(SIZE, 0))
    for request in requests:
        assert files.finished() == request
        assert request.status == 0
    assert requests[-1].result_bytes == 2500


def test_what_the_page_cache_has_is_read_without_waiting(files: Files) -> None:
    files.do(OPEN, 0, path="a", flags=CREATE)
    files.do(WRITE, 0, data=b"cached" * 100)
    target = ffi.new("uint8_t[600]")
    assert lib.io_file_read_now(files.file, 0, 0, target, 600) == 0
    assert bytes(ffi.buffer(target)) == b"cached" * 100
    assert lib.io_file_read_now(files.file, 0, 1, target, 600) != 0
    assert lib.io_file_read_now(files.file, 9, 0, target, 1) != 0


def test_a_slot_on_its_way_to_another_file_is_not_read_past_the_queue(files: Files) -> None:
    files.do(OPEN, 0, path="theirs", flags=CREATE)
    files.do(WRITE, 0, data=b"theirs" * 100)
    files.do(OPEN, 1, path="ours", flags=CREATE)
    files.do(WRITE, 1, data=b"ours!!" * 100)
    files.start()
    target = ffi.new("uint8_t[600]")
    assert lib.io_file_read_now(files.file, 0, 0, target, 600) == 0
    moves = [files.submit(CLOSE, 0), files.submit(OPEN, 0, path="ours")]
    # Whatever the thread has done by now: the pump has not seen it, so it may not read.
    assert lib.io_file_read_now(files.file, 0, 0, target, 600) != 0
    assert files.finished() == moves[0]
    assert lib.io_file_read_now(files.file, 0, 0, target, 600) != 0
    assert files.finished() == moves[1]
    assert lib.io_file_read_now(files.file, 0, 0, target, 600) == 0
    assert bytes(ffi.buffer(target)) == b"ours!!" * 100
