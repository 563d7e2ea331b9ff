"""outbox.c: answers that the caller does not take fill it; accepted calls keep their places."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from native._engine_sim import ffi, lib
from tests.support.builders.storage import client_part, name
from tests.support.builders.store import Disk, Store

OUTCOMES_MAX = 16384
Call = Callable[[Store], str]


def seal(store: Store) -> str:
    return name(lib.store_seal(store.store, store.id(3), 9, store.token()))


def purge(store: Store) -> str:
    everything = ffi.new("struct engine_purge *", {"log_start": 0})
    return name(lib.store_purge(store.store, store.id(3), everything, store.token()))


def flush(store: Store) -> str:
    return name(lib.store_meter_flush(store.store, store.id(3), store.token()))


@pytest.mark.parametrize("call", [seal, purge, flush])
def test_a_call_that_is_answered_at_once_leaves_room_for_those_that_wait(call: Call) -> None:
    store = Store(Disk())
    assert store.status == "OK", store.detail
    accepted = [store.produce(client_part(1), partition) for partition in (0, 1)]
    assert store.tables(op=9, closing=True) == "OK"
    answers = [call(store) for _ in range(OUTCOMES_MAX - 2)]
    assert set(answers) == {"OK"}
    refused = store.statistics().refused_busy
    assert call(store) == "BUSY"
    assert store.statistics().refused_busy == refused + 1
    for token in accepted:
        assert isinstance(token, int), token
        assert store.wait(token).status == "OK"
    assert call(store) == "OK"
