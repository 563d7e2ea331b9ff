"""seal.c: the end of a partition's log: nothing behind SEAL, and the last window closed."""

from __future__ import annotations

import pytest

from native._engine_sim import ffi, lib
from tests.support.builders.storage import client_part, name
from tests.support.builders.store import Disk, Store

PRODUCER = b"seven".ljust(16, b"-")


def opened(disk: Disk | None = None) -> Store:
    store = Store(disk or Disk())
    assert store.status == "OK", store.detail
    return store


def acknowledge(store: Store, sequence: int) -> None:
    assert lib.store_meter_ack(store.store, store.id(), sequence) == 0


def test_a_seal_closes_the_last_window_and_says_what_it_came_to() -> None:
    store = opened()
    for _ in range(3):
        store.append(client_part(2))
    outcome = store.sealed(40)
    assert (outcome.status, outcome.sealed) == ("OK", (6, 1, 0))
    assert store.described() == 4
    acknowledge(store, 1)
    assert store.sealed(40).sealed == (6, 1, 1)


def test_behind_a_seal_everything_is_refused_but_reads_go_on() -> None:
    store = opened()
    store.append(client_part(1))
    store.fence(2, 3, 1, 39)
    store.sealed(40)
    before = store.log()
    assert store.produce(client_part(1)) == "CLOSED"
    assert store.commit(3, 1, 1).status == "CLOSED"
    assert store.fence(1, 3, 2, 41).status == "CLOSED"
    assert store.fence(2, 3, 2, 41).status == "CLOSED"
    assert name(store.fetch(0, group=3, generation=1).status) == "CLOSED"
    assert store.log() == before
    assert len(before) == 1


def test_batches_on_their_way_when_the_seal_comes_are_before_or_behind_it() -> None:
    store = opened()
    first = store.produce(client_part(1, producer=PRODUCER, sequence=0))
    seal = store.seal(40)
    behind = store.produce(client_part(1, producer=PRODUCER, sequence=1))
    assert isinstance(first, int)
    assert isinstance(seal, int)
    assert isinstance(behind, int)
    store.run()
    assert store.outcomes[first].status == "OK"
    assert store.outcomes[behind].status == "CLOSED"
    assert store.outcomes[seal].sealed == (1, 1, 0)


def test_a_repeated_batch_is_told_its_offset_after_the_seal_too() -> None:
    store = opened()
    part = client_part(2, producer=PRODUCER, sequence=0)
    store.append(part)
    store.sealed(40)
    again = store.append(part)
    assert (again.status, again.base_offset, again.duplicate) == ("OK", 0, True)


def test_a_closing_topic_refuses_what_is_new_and_answers_repetitions_when_they_are_known() -> None:
    store = opened()
    part = client_part(2, producer=PRODUCER, sequence=0)
    token = store.produce(part)
    assert isinstance(token, int)
    assert store.tables(op=9, closing=True) == "OK"
    assert store.produce(client_part(1)) == "CLOSED"
    assert store.produce(part) == "BUSY"
    store.wait(token)
    assert store.append(part).duplicate
    assert store.commit(3, 0, 1).status == "OK"


def test_an_overtaken_intent_seals_nothing() -> None:
    store = opened()
    store.append(client_part(1))
    assert store.sealed(40).status == "OK"
    assert store.sealed(39).status == "STALE_INTENT"
    assert store.sealed(41).status == "OK"
    assert store.seal(0) == "INVALID"


def test_a_partition_without_operations_is_sealed_by_its_closing_topic_alone() -> None:
    store = opened()
    assert store.seal(40) == "INVALID"
    assert store.tables(op=9, closing=True) == "OK"
    entries = store.statistics().entries
    assert store.sealed(40).sealed == (0, 0, 0)
    assert store.described() == 4
    assert store.produce(client_part(1)) == "CLOSED"
    refused = lib.store_commit_offset(store.store, store.id(), 3, 0, 0, store.token())
    assert name(refused) == "CLOSED"
    assert store.statistics().entries == entries
    assert store.statistics().replicas_live == 1  # the metadata group


def test_unacknowledged_windows_hold_the_last_close_back() -> None:
    store = opened()
    for _ in range(8):
        store.append(client_part(1))
        store.pass_time(1_100_000)
        store.run()
    store.append(client_part(1))
    assert store.sealed(40).status == "BUSY"
    assert store.described() == 4
    acknowledge(store, 8)
    assert store.sealed(40).sealed == (9, 9, 8)


def test_one_seal_of_a_partition_is_under_way_at_a_time() -> None:
    store = opened()
    store.append(client_part(1))
    token = store.seal(40)
    assert isinstance(token, int)
    assert store.seal(40) == "BUSY"
    assert store.wait(token).status == "OK"


@pytest.mark.parametrize("checkpointed", [False, True])
def test_a_sealed_partition_is_sealed_after_a_restart(checkpointed: bool) -> None:
    disk = Disk()
    store = opened(disk)
    store.append(client_part(3))
    store.sealed(40)
    if checkpointed:
        lib.store_checkpoint_all(store.store)
        store.run()
    disk.crash()
    after = opened(disk)
    assert after.described() == 4
    assert after.produce(client_part(1)) == "CLOSED"
    assert after.sealed(40).sealed == (3, 1, 0)
    assert len(after.log()) == 1


def test_a_crash_between_the_seal_and_the_last_close_is_carried_on() -> None:
    disk = Disk()
    store = opened(disk)
    store.append(client_part(1))
    token = store.seal(40)
    assert isinstance(token, int)
    store.run(until=lambda: store.described() == 4)
    assert token not in store.outcomes
    disk.crash()
    assert opened(disk).sealed(40).sealed == (1, 1, 0)


def test_a_partition_that_is_never_metered_is_sealed_without_a_close() -> None:
    store = Store(Disk(), metered=False)
    store.append(client_part(1))
    assert store.sealed(40).sealed == (1, 0, 0)


@pytest.mark.parametrize(
    "body",
    [b"", bytes(16), b"\x02" + bytes(15), b"\x01" + bytes(15), b"\x01\x01" + bytes(14)],
)
def test_a_malformed_seal_is_no_seal(body: bytes) -> None:
    seal = ffi.new("struct partition_seal *")
    assert name(lib.partition_decode_seal(body, len(body), seal)) == "OP_MALFORMED"
