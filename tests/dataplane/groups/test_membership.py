"""Membership and hand-over as a model: members come and go, partitions' logs close in any order."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from dataplane.groups import membership
from dataplane.groups.assignment import Slice
from dataplane.groups.membership import NO_OWNER, Group, Liveness, Member, Owner

TOPIC = 16
PARTITIONS = {TOPIC: 5}


def _group() -> Group:
    return Group(number=16, organization_id="org_1", project_id="prj_1", name="readers")


class GroupModel(RuleBasedStateMachine):
    """A group next to a plain record of what each partition's log was told."""

    def __init__(self) -> None:
        super().__init__()
        self.group = _group()
        self.op = 0
        self.session = 0
        self.closed: dict[Slice, int] = {}
        self.owners: dict[tuple[Slice, int], Owner] = {}
        self.generation_before = 0

    def _next_op(self) -> int:
        self.op += 1
        self.generation_before = self.group.generation
        self.bound_before = self._bound()
        return self.op

    def _bound(self) -> dict[Slice, Owner]:
        return {place: slot.bound_for() for place, slot in self.group.slots.items()}

    def _changed(self, changed: bool) -> None:
        # CG-6: the generation rises exactly when the assignment changes.
        assert changed == (self.group.generation == self.generation_before + 1)
        assert changed == (self.bound_before != self._bound())

    @rule(name=st.sampled_from("abcde"))
    def come(self, name: str) -> None:
        self.session += 1
        op = self._next_op()
        member = Member(self.session, (TOPIC,))
        self._changed(membership.join(self.group, name, member, partitions=PARTITIONS, op=op))

    @rule(name=st.sampled_from("abcde"), stale=st.booleans())
    def go(self, name: str, stale: bool) -> None:
        member = self.group.members.get(name)
        session = (member.session if member else 0) - (1 if stale else 0)
        op = self._next_op()
        wanted = PARTITIONS if len(self.group.members) > (0 if stale else 1) else {}
        self._changed(membership.leave(self.group, Owner(name, session), partitions=wanted, op=op))
        assert (name in self.group.members) == (member is not None and stale)

    @precondition(lambda self: any(slot.moving for slot in self.group.slots.values()))
    @rule(data=st.data())
    def finish_a_move(self, data: st.DataObject) -> None:
        place = data.draw(st.sampled_from(sorted(membership.moves(self.group))))
        slot = self.group.slots[place]
        # CLOSE in the partition's log: never lower than what it saw (T1).
        assert slot.generation > self.closed.get(place, 0)
        self.closed[place] = slot.generation
        target = slot.target
        assert membership.confirm(
            self.group, place, intent_op=slot.intent_op, has_committed=True, committed=1
        )
        assert slot.owner == target
        # One owner per generation of a partition, for ever.
        assert self.owners.setdefault((place, slot.owner_generation), target) == target

    @precondition(lambda self: bool(self.group.slots))
    @rule(data=st.data(), back=st.integers(1, 3))
    def confirm_an_old_intent(self, data: st.DataObject, back: int) -> None:
        place = data.draw(st.sampled_from(sorted(self.group.slots)))
        slot = self.group.slots[place]
        before = (slot.owner, slot.target, slot.moving)
        assert not membership.confirm(
            self.group,
            place,
            intent_op=slot.intent_op - back,
            has_committed=False,
            committed=0,
        )
        assert (slot.owner, slot.target, slot.moving) == before

    @invariant()
    def nothing_is_orphaned_and_loads_are_balanced(self) -> None:
        bound = [slot.bound_for() for slot in self.group.slots.values()]
        for owner in bound:
            assert self.group.has(owner) if self.group.members else owner == NO_OWNER
        loads = [sum(1 for owner in bound if owner.member == name) for name in self.group.members]
        assert not loads or (len(bound) == PARTITIONS[TOPIC] and max(loads) - min(loads) <= 1)

    @invariant()
    def a_partition_is_read_by_one_session(self) -> None:
        assignments = membership.session_assignments(self.group).values()
        told = [held.place for seen in assignments for held in seen.partitions]
        assert len(told) == len(set(told))
        moving = set(membership.moves(self.group))
        assert not moving & {place for seen in assignments for place, *_ in seen.assigned()}

    @invariant()
    def a_generation_is_closed_before_it_is_read(self) -> None:
        for place, slot in self.group.slots.items():
            assert slot.owner == NO_OWNER or self.closed[place] >= slot.owner_generation


TestGroupModel = GroupModel.TestCase
TestGroupModel.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def _settled(group: Group) -> None:
    for place, intent_op in membership.moves(group).items():
        membership.confirm(group, place, intent_op=intent_op, has_committed=False, committed=0)


def test_a_first_member_is_assigned_only_after_the_log_was_closed() -> None:
    group = _group()
    membership.join(group, "a", Member(1, (TOPIC,)), partitions=PARTITIONS, op=5)
    assert membership.session_assignments(group)[Owner("a", 1)].assigned() == ()
    assert group.state() == "MOVING"
    _settled(group)
    assert len(membership.session_assignments(group)[Owner("a", 1)].assigned()) == 5
    assert group.state() == "STABLE"


def test_a_second_session_of_a_name_fences_the_first() -> None:
    group = _group()
    membership.join(group, "a", Member(1, (TOPIC,)), partitions=PARTITIONS, op=5)
    _settled(group)
    membership.join(group, "a", Member(2, (TOPIC,)), partitions=PARTITIONS, op=6)
    assert not group.has(Owner("a", 1))
    assert membership.session_assignments(group)[Owner("a", 2)].assigned() == ()
    generations = {slot.owner_generation for slot in group.slots.values()}
    _settled(group)
    assert len(membership.session_assignments(group)[Owner("a", 2)].assigned()) == 5
    assert generations.isdisjoint({slot.owner_generation for slot in group.slots.values()})


def test_a_newcomer_moves_only_its_share_and_the_old_owner_is_told_to_stop() -> None:
    group = _group()
    membership.join(group, "a", Member(1, (TOPIC,)), partitions=PARTITIONS, op=5)
    _settled(group)
    membership.join(group, "b", Member(2, (TOPIC,)), partitions=PARTITIONS, op=6)
    seen = membership.session_assignments(group)[Owner("a", 1)]
    assert (len(seen.assigned()), len(seen.revoked()), seen.members) == (3, 2, 2)


def test_a_target_that_leaves_sends_the_partition_back_under_a_new_intent() -> None:
    group = _group()
    membership.join(group, "a", Member(1, (TOPIC,)), partitions=PARTITIONS, op=5)
    _settled(group)
    membership.join(group, "b", Member(2, (TOPIC,)), partitions=PARTITIONS, op=6)
    overtaken = membership.moves(group)
    membership.leave(group, Owner("b", 2), partitions=PARTITIONS, op=7)
    assert set(membership.moves(group).values()) == {7}
    assert not any(
        membership.confirm(group, place, intent_op=op, has_committed=False, committed=0)
        for place, op in overtaken.items()
    )
    _settled(group)
    assert len(membership.session_assignments(group)[Owner("a", 1)].assigned()) == 5


def test_silence_is_reported_once_and_a_sign_of_life_begins_it_anew() -> None:
    now = [0.0]
    liveness: Liveness[str] = Liveness(lambda: now[0])
    liveness.watch("a", 10)
    liveness.watch("b", 3)
    now[0] = 2.9
    liveness.heard("b")
    now[0] = 5.8
    assert liveness.expired() == []
    now[0] = 5.9
    assert liveness.expired() == ["b"]
    liveness.heard("b")
    now[0] = 60
    assert liveness.expired() == ["a"]
    assert liveness.expired() == []


def test_an_empty_group_keeps_its_generation_and_no_slots() -> None:
    group = _group()
    membership.join(group, "a", Member(1, (TOPIC,)), partitions=PARTITIONS, op=5)
    _settled(group)
    membership.leave(group, Owner("a", 1), partitions={}, op=6)
    assert (group.slots, group.generation) == ({}, 2)
    membership.join(group, "a", Member(2, (TOPIC,)), partitions=PARTITIONS, op=7)
    assert {(slot.generation, slot.intent_op) for slot in group.slots.values()} == {(3, 7)}
