"""segment_writer.c: segments on a disk that has no room for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from native._engine_sim import ffi, lib
from tests.support.builders.storage import client_part
from tests.support.builders.store import Disk, Store

if TYPE_CHECKING:
    from native._engine_sim import CData


def test_a_start_without_room_for_a_folder_makes_it_later() -> None:
    disk = Disk()
    store = Store(disk)
    disk.storage.disk_full = 2
    assert store.append(client_part(1, size=500)).status == "OK"
    store.run()
    disk.crash()
    assert disk.listed("topics") == []
    perform = disk.storage.io.perform

    def refuse(context: CData, request: CData) -> int:
        if request.operation == lib.IO_MKDIR and ffi.string(request.path).startswith(b"topics/"):
            return int(lib.STATUS_STORAGE_FULL)
        return int(perform(context, request))

    full = ffi.callback("enum status(void *, struct io_request *)", refuse)
    disk.storage.io.perform = full
    after = Store(disk)
    assert after.status == "OK", after.detail
    assert after.statistics().storage_full == 1
    after.pass_time(1_000_000)
    after.run()
    assert after.statistics().storage_full == 0
    assert after.append(client_part(1)).base_offset == 1
    after.run()
    assert "00000000000000000000.log" in disk.listed("topics")
    assert len(after.log()) == 2
