"""What members are told, and how much work a change makes."""

from dataplane.coordinator.session_registry import MemberSession, SessionRegistry
from dataplane.groups import membership
from dataplane.groups.membership import Group, Member, Owner
from tests.support.builders.commands import Log, put_topic

TOPIC = 16
MEMBERS = 256
PARTITIONS = 1024


def _group() -> Group:
    return Group(number=16, organization_id="org_1", project_id="prj_1", name="readers")


def _joined(
    group: Group, registry: SessionRegistry, name: str, number: int, *, partitions: int
) -> None:
    owner = Owner(name, number)
    registry.add(MemberSession(group.number, owner, 10.0))
    counts = {TOPIC: partitions}
    membership.join(group, name, Member(number, (TOPIC,)), partitions=counts, op=number)


def _filled(group: Group, registry: SessionRegistry, *, members: int) -> None:
    """As many members as if they had joined, decided upon once."""
    for number in range(1, members + 1):
        registry.add(MemberSession(group.number, Owner(f"member-{number}", number), 10.0))
        group.members[f"member-{number}"] = Member(number, (TOPIC,))
    membership.rebalance(group, partitions={TOPIC: PARTITIONS}, op=1)


def test_a_confirmed_move_is_rendered_for_its_two_owners_alone() -> None:
    log = Log()
    log.do(put_topic(partitions=PARTITIONS))
    state, group, registry = log.machine.state, _group(), SessionRegistry()
    _filled(group, registry, members=MEMBERS - 1)
    for place, intent_op in membership.moves(group).items():
        membership.confirm(group, place, intent_op=intent_op, has_committed=False, committed=0)
    _joined(group, registry, "last", MEMBERS, partitions=PARTITIONS)
    assert registry.assign(state, group) == []
    assert registry.rendered == MEMBERS  # The generation and the count of members are everybody's.
    assert registry.assign(state, group) == []
    assert registry.rendered == MEMBERS
    moves = membership.moves(group)
    assert len(moves) == PARTITIONS // MEMBERS
    for place, intent_op in moves.items():
        membership.confirm(group, place, intent_op=intent_op, has_committed=True, committed=7)
        assert registry.assign(state, group) == []
    assert registry.rendered == MEMBERS + 2 * len(moves)


def test_a_first_assignment_of_every_partition_renders_one_message_each() -> None:
    log = Log()
    log.do(put_topic(partitions=PARTITIONS))
    state, group, registry = log.machine.state, _group(), SessionRegistry()
    _filled(group, registry, members=MEMBERS)
    registry.assign(state, group)
    for place, intent_op in membership.moves(group).items():
        membership.confirm(group, place, intent_op=intent_op, has_committed=False, committed=0)
        registry.assign(state, group)
    assert registry.rendered == MEMBERS + PARTITIONS


def test_a_session_that_was_replaced_is_named_and_others_of_other_groups_are_not() -> None:
    state, group, registry = Log().machine.state, _group(), SessionRegistry()
    registry.add(MemberSession(group.number + 1, Owner("stranger", 9), 10.0))
    _joined(group, registry, "twin", 1, partitions=2)
    _joined(group, registry, "twin", 2, partitions=2)
    assert [session.owner for session in registry.assign(state, group)] == [Owner("twin", 1)]
    assert (registry.count(), registry.rendered) == (3, 1)
    first = registry.get(group.number, Owner("twin", 1))
    assert first is not None
    registry.remove(first)
    assert registry.get(group.number, Owner("twin", 1)) is None
    assert [session.owner.member for session in registry] == ["stranger", "twin"]
