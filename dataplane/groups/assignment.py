"""Who gets which partition: pure, deterministic, sticky.

Owns one function from (members with their topics, partitions, owners so far) to owners. It keeps
what it can: a partition changes hands only when its owner is gone or when that makes the loads
closer than they were. When all members want the same topics, no two loads differ by more than one
and no assignment with that property moves less. Refuses nothing: a topic without subscribers
has no owners.
"""

from collections.abc import Mapping, Set
from typing import NamedTuple


class Slice(NamedTuple):
    """One partition of one topic, by number. Ordered: topic first."""

    topic: int
    partition: int


def assign(
    members: Mapping[str, Set[int]],
    partitions: Mapping[int, int],
    current: Mapping[Slice, str],
) -> dict[Slice, str]:
    """The owner of every wanted partition.

    members: member name -> numbers of the topics it wants. partitions: topic number -> count.
    current: who has or is about to get each partition now; entries that no longer fit are ignored.
    """
    owned: dict[str, list[Slice]] = {name: [] for name in sorted(members)}
    homeless: list[Slice] = []
    for topic in sorted(partitions):
        if not any(topic in wanted for wanted in members.values()):
            continue
        for index in range(partitions[topic]):
            place = Slice(topic, index)
            owner = current.get(place, "")
            if owner in members and topic in members[owner]:
                owned[owner].append(place)
            else:
                homeless.append(place)

    for place in homeless:
        owned[_least_loaded(members, owned, place.topic)].append(place)
    while _move_one(members, owned):
        pass
    return {place: name for name, places in owned.items() for place in places}


def _least_loaded(
    members: Mapping[str, Set[int]], owned: Mapping[str, list[Slice]], topic: int
) -> str:
    return min(
        (name for name in owned if topic in members[name]),
        key=lambda name: (len(owned[name]), name),
    )


def _move_one(members: Mapping[str, Set[int]], owned: dict[str, list[Slice]]) -> bool:
    """Move one partition from a fuller member to one at least two emptier, if there is such a pair.

    Every such move lowers the sum of the squared loads, so repeating it ends.
    """
    for giver in sorted(owned, key=lambda name: (-len(owned[name]), name)):
        topics_tried: set[int] = set()
        for place in sorted(owned[giver], reverse=True):
            if place.topic in topics_tried:
                continue
            topics_tried.add(place.topic)
            taker = _least_loaded(members, owned, place.topic)
            if len(owned[taker]) + 1 < len(owned[giver]):
                owned[giver].remove(place)
                owned[taker].append(place)
                return True
    return False
