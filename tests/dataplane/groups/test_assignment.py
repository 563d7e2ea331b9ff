"""The assignment against its definition: balanced, sticky, complete, deterministic."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from dataplane.groups.assignment import Slice, assign

names = st.text("abcdefgh", min_size=1, max_size=3)
counts = st.dictionaries(st.integers(16, 19), st.integers(1, 9), min_size=1, max_size=4)


def _slices(partitions: dict[int, int]) -> list[Slice]:
    return [Slice(topic, index) for topic, count in partitions.items() for index in range(count)]


@st.composite
def groups(
    draw: st.DrawFn,
) -> tuple[dict[str, frozenset[int]], dict[int, int], dict[Slice, str]]:
    partitions = draw(counts)
    members = {name: frozenset(partitions) for name in draw(st.sets(names, min_size=1, max_size=6))}
    owners = st.sampled_from([*sorted(members), "gone", ""])
    return members, partitions, {place: draw(owners) for place in _slices(partitions)}


@given(groups())
def test_every_partition_has_one_owner_and_no_two_loads_differ_by_more_than_one(
    case: tuple[dict[str, frozenset[int]], dict[int, int], dict[Slice, str]],
) -> None:
    members, partitions, current = case
    found = assign(members, partitions, current)
    assert sorted(found) == sorted(_slices(partitions))
    loads = Counter(found.values())
    assert set(loads) <= set(members)
    assert max(loads[name] for name in members) - min(loads[name] for name in members) <= 1


@given(groups())
def test_no_balanced_assignment_moves_fewer_partitions(
    case: tuple[dict[str, frozenset[int]], dict[int, int], dict[Slice, str]],
) -> None:
    members, partitions, current = case
    found = assign(members, partitions, current)
    moved = sum(1 for place, name in current.items() if name in members and found[place] != name)
    # The least possible: all keep up to their share, those who have most get the larger shares.
    share, larger = divmod(len(current), len(members))
    kept = sorted((sum(1 for n in current.values() if n == m) for m in members), reverse=True)
    least = sum(
        max(0, load - share - (1 if rank < larger else 0)) for rank, load in enumerate(kept)
    )
    assert moved == least


@given(groups())
def test_assigning_again_changes_nothing(
    case: tuple[dict[str, frozenset[int]], dict[int, int], dict[Slice, str]],
) -> None:
    members, partitions, current = case
    once = assign(members, partitions, current)
    assert assign(members, partitions, once) == once
    reordered = dict(sorted(members.items(), reverse=True))
    assert assign(reordered, partitions, current) == once


@given(
    partitions=counts,
    members=st.dictionaries(names, st.frozensets(st.integers(16, 20), max_size=4), max_size=5),
)
def test_a_member_gets_only_topics_it_wants(
    partitions: dict[int, int], members: dict[str, frozenset[int]]
) -> None:
    found = assign(members, partitions, {})
    assert all(place.topic in members[name] for place, name in found.items())
    wanted = frozenset[int]().union(*members.values())
    assert {place.topic for place in found} == wanted & set(partitions)


def test_a_newcomer_takes_only_its_share() -> None:
    before = assign({"a": frozenset({16})}, {16: 4}, {})
    after = assign({"a": frozenset({16}), "b": frozenset({16})}, {16: 4}, before)
    assert [name for _, name in sorted(after.items())] == ["a", "a", "b", "b"]


def test_more_members_than_partitions_leave_some_idle() -> None:
    members = {name: frozenset({16}) for name in "abc"}
    assert sorted(assign(members, {16: 2}, {}).values()) == ["a", "b"]
