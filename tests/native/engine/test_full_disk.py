"""A disk without room: what goes on, what is refused, and a start there.

The journal has its place from the first start on, so only batches need room. What was acknowledged
from the journal is read from memory until a segment can take it.
"""

import pytest

from native._engine_sim import lib
from tests.support.builders.storage import client_part, name
from tests.support.builders.store import Disk, Store


def opened(disk: Disk) -> Store:
    """A store on this disk that serves."""
    store = Store(disk)
    assert store.status == "OK", store.detail
    return store


def filled(disk: Disk) -> tuple[Store, int]:
    """A store whose disk has become full, and how many batches it took."""
    store = opened(disk)
    disk.storage.disk_full = 1
    taken = 0
    while not isinstance(token := store.produce(client_part(1, size=500)), str):
        store.run()
        assert store.outcomes[token].status == "OK"
        taken += 1
    assert token == "STORAGE_FULL"
    assert taken > 0
    return store, taken


def test_commits_seals_and_metadata_go_on_without_room() -> None:
    store, taken = filled(Disk())
    assert store.commit(3, 0, taken).committed == taken
    command = b"a deletion"
    submitted = lib.store_metadata_submit(store.store, command, len(command), store.token())
    assert name(submitted) == "OK"
    assert store.sealed(7).status == "OK"
    assert store.produce(client_part(1)) == "STORAGE_FULL"


# More than a journal of this size holds, one round each.
COMMITS_MANY = 200


@pytest.mark.xfail(
    strict=True,
    raises=AssertionError,
    reason="Commits fill the journal: no extent is given back while a batch in it has no segment.",
)
def test_commits_go_on_without_room_however_many_they_are() -> None:
    store, taken = filled(Disk())
    for _ in range(COMMITS_MANY):
        status = lib.store_commit_offset(store.store, store.id(), 3, 0, taken, store.token())
        assert name(status) == "OK"
        store.run()


@pytest.mark.xfail(
    strict=True,
    raises=AssertionError,
    reason="A journal full of commits refuses the purge that would make room on the full disk.",
)
def test_a_purge_is_taken_without_room_however_many_commits_came_before() -> None:
    store, taken = filled(Disk())
    for _ in range(COMMITS_MANY):  # taken or refused
        lib.store_commit_offset(store.store, store.id(), 3, 0, taken, store.token())
        store.run()
    assert store.purge(taken).status == "OK"


def test_a_store_starts_without_room_and_serves_what_it_has() -> None:
    disk = Disk()
    _, taken = filled(disk)
    for _ in range(2):
        disk.crash()
        disk.storage.disk_full = 1
        store = opened(disk)
        assert store.status == "OK", store.detail
        assert store.statistics().storage_full == 1
        assert len(store.log()) == taken
        assert store.produce(client_part(1)) == "STORAGE_FULL"
    disk.storage.disk_full = 0
    store.pass_time(600_000)
    assert store.append(client_part(1)).base_offset == taken
    store.run()
    disk.crash()
    assert len(opened(disk).log()) == taken + 1


def test_a_stop_without_room_need_not_wait_for_it() -> None:
    disk = Disk()
    store, taken = filled(disk)
    lib.store_checkpoint_all(store.store)
    store.run(until=lambda: bool(lib.store_stuck(store.store)))
    disk.crash()
    assert len(opened(disk).log()) == taken


@pytest.mark.parametrize("extra", [0, 1])
def test_a_shard_full_of_partitions_refuses_another_by_name(extra: int) -> None:
    disk = Disk()
    store = Store(disk, topic=False)
    store.tables(partitions=16 + extra)
    answers = [store.produce(client_part(1), partition) for partition in range(16 + extra)]
    assert [one for one in answers if isinstance(one, str)] == ["PARTITIONS_FULL"] * extra
