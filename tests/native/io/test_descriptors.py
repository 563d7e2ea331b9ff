"""Shares of the process's descriptors: connections never take those of segments."""

from __future__ import annotations

import pytest

from native._engine_sim import ffi, lib
from tests.support.builders.storage import name

CONNECTIONS_OF_A_SHARD = 1024


def shared(limit: int, shards: int) -> tuple[int, int, int] | str:
    """(segments of a shard, connections of a shard, the number connections stay below)."""
    shares = ffi.new("struct descriptors *")
    detail = ffi.new("char[256]")
    status = lib.descriptors_share(limit, shards, shares, detail, 256)
    if status != 0:
        return f"{name(status)}: {bytes(ffi.string(detail)).decode()}"
    return shares.files_max, shares.connections_max, shares.accepted_end


@pytest.mark.parametrize("limit", [256, 1024, 4096, 65536, 1 << 20, (1 << 64) - 1])
@pytest.mark.parametrize("shards", [1, 3])
def test_the_shares_together_are_never_more_than_the_limit(limit: int, shards: int) -> None:
    found = shared(limit, shards)
    assert not isinstance(found, str)
    files, connections, end = found
    assert 8 <= files <= 512
    assert connections >= 16
    assert shards * (files + connections) < limit
    # Beyond the last connection there are numbers for every segment.
    assert end + shards * files <= limit


def test_a_usual_limit_leaves_the_tables_whole() -> None:
    found = shared(65536, 3)
    assert not isinstance(found, str)
    files, connections, _ = found
    assert files == 512
    assert connections >= CONNECTIONS_OF_A_SHARD


@pytest.mark.parametrize(("limit", "shards"), [(64, 1), (147, 1), (1024, 64)])
def test_a_limit_that_is_too_low_is_refused_with_the_least_that_does(
    limit: int, shards: int
) -> None:
    said = shared(limit, shards)
    assert isinstance(said, str)
    assert said.startswith(f"DESCRIPTORS_FEW: the limit is {limit}, {shards} shards take at least")
    least = int(said.rsplit(" ", 1)[1])
    assert not isinstance(shared(least, shards), str)
    assert isinstance(shared(least - 1, shards), str)
