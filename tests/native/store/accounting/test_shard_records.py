"""shard_records.c: what the journal says of no one group outlives the extents it was said in."""

from __future__ import annotations

from dataplane.engine.frames import PartitionId
from dataplane.engine.partition_client import owner_of
from tests.support.builders.storage import client_part
from tests.support.builders.store import REVISION, TOPIC, Disk, Store

BLOCK_BYTES = 4096
UNSEEN, LOADED = TOPIC + 1, TOPIC + 2
LATER = REVISION + 10


def damaged_behind_the_last_round(disk: Disk) -> None:
    """Something was written there, and nobody can tell what."""
    journal = disk.read("journal")
    blocks = range(0, len(journal), BLOCK_BYTES)
    last = max(at for at in blocks if any(journal[at : at + BLOCK_BYTES]))
    disk.poke("journal", last + BLOCK_BYTES, b"\xa5" * BLOCK_BYTES)


def own(topic: int) -> int:
    """A partition of the topic that lies on the second shard of two."""
    return next(part for part in range(4) if owner_of(PartitionId(topic, REVISION, part), 2) == 1)


def loaded(store: Store, releases: int) -> None:
    """Give back so many extents."""
    before = store.statistics().extents_released
    while store.statistics().extents_released < before + releases:
        part = client_part(1, size=3000)
        token = store.produce(part, own(LOADED), topic=LOADED, revision=LATER)
        assert isinstance(token, int), token
        store.wait(token)


def told(store: Store) -> None:
    """The tables: one topic of before the damage, one of after it."""
    assert store.tables(op=LATER, topic=LOADED, revision=LATER) == "OK"
    assert store.tables(op=LATER, topic=UNSEEN) == "OK"


def test_partitions_of_which_damage_left_nothing_stay_stopped_however_long_ago() -> None:
    disk = Disk()
    store = Store(disk, shard=1)  # the first one has the metadata, which is stopped too
    store.append(client_part(1), own(TOPIC))
    disk.crash()
    damaged_behind_the_last_round(disk)

    store = Store(disk, shard=1)
    assert store.status == "OK", store.detail
    told(store)
    # The only group that the damage stopped goes: nothing else has the extents read again.
    assert store.tables(op=LATER + 1, gone=True) == "OK"
    assert store.produce(client_part(1), own(UNSEEN), topic=UNSEEN) == "DAMAGED"
    loaded(store, releases=20)
    disk.crash()

    store = Store(disk, shard=1, topic=False)
    assert store.status == "OK", store.detail
    told(store)
    assert store.produce(client_part(1), own(UNSEEN), topic=UNSEEN) == "DAMAGED"
    token = store.produce(client_part(1), own(LOADED), topic=LOADED, revision=LATER)
    assert isinstance(token, int)


def test_damage_after_damage_is_not_settled_by_the_first() -> None:
    disk = Disk()
    store = Store(disk)
    store.append(client_part(1))
    disk.crash()
    damaged_behind_the_last_round(disk)
    store = Store(disk)  # its tables settle the first damage: topics up to REVISION
    store.run()
    told(store)
    store.run()
    disk.crash()
    damaged_behind_the_last_round(disk)

    store = Store(disk, topic=False)
    assert store.status == "OK", store.detail
    disk.crash()  # before the tables came
    store = Store(disk, topic=False)
    assert store.status == "OK", store.detail
    told(store)
    assert store.produce(client_part(1), topic=LOADED, revision=LATER) == "DAMAGED"
