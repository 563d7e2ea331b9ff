"""Checkpoint files and the metadata floor as a model, crashed at any step: rules J3, J7, V8."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.simulation.model_files import BLOCKS, EXTENTS, FLOOR_AGAIN, RULES, Folder, Shard
from tests.simulation.model_journal import Disk


class Files(RuleBasedStateMachine):
    """One task at a time, step by step; a kill or a power cut between any two steps."""

    broken = ""

    def __init__(self) -> None:
        super().__init__()
        self.shard = Shard(Disk(EXTENTS, BLOCKS), Folder(), self.broken)
        self.task: Iterator[None] | None = None
        self.acked: tuple[int, ...] = ()

    def _run(self, steps: int) -> None:
        for _ in range(steps):
            if self.task is not None and next(self.task, "over") == "over":
                self.task = None
        self.acked = max(self.acked, self.shard.values[: self.shard.acked], key=len)

    @precondition(lambda self: self.task is None)
    @rule(
        kind=st.sampled_from(["produce", "save", "act", "release", "release"]),
        size=st.integers(0, 4),
        steps=st.sampled_from([40, 40, 40, *range(13)]),
    )
    def begin(self, kind: str, size: int, steps: int) -> None:
        """A task, carried out as far as its next crash, or to its end."""
        shard = self.shard
        if kind == "release":
            if shard.releasable():
                self.task = shard.release(size)
        elif shard.room():
            tasks = {"save": shard.save, "act": shard.act}
            self.task = tasks[kind]() if kind in tasks else shard.produce(size)
        elif shard.releasable():
            self.task = shard.release(size)
        self._run(steps)

    @precondition(lambda self: self.task is None and self.shard.room())
    @rule(rounds=st.integers(1, 2 * BLOCKS))
    def idle(self, rounds: int) -> None:
        """Witness rounds: extents get full of nothing."""
        for _ in range(rounds):
            if self.shard.room():
                self.task = self.shard.produce(0)
                self._run(3)

    @precondition(lambda self: self.task is not None)
    @rule(steps=st.integers(1, 20))
    def go_on(self, steps: int) -> None:
        """The task's next steps."""
        self._run(steps)

    @precondition(lambda self: len(self.shard.journal.free()) > 1)
    @rule()
    def kill(self) -> None:
        """Only the process dies."""
        self._recover()

    @precondition(lambda self: len(self.shard.journal.free()) > 1)
    @rule(data=st.data())
    def power_cut(self, data: st.DataObject) -> None:
        """Any part of what was not synced is gone."""
        blocks, names = self.shard.dirty()
        kept = set(data.draw(st.lists(st.sampled_from(blocks)))) if blocks else set()
        whole = set(data.draw(st.lists(st.sampled_from(names)))) if names else set()
        self.shard.disk.power_cut(kept)
        self.shard.folder.power_cut(whole)
        self._recover()

    def _recover(self) -> None:
        self.task = None
        state = self.shard.recover()
        assert state.values[: len(self.acked)] == self.acked, "acknowledged and lost"
        assert state.applied >= self.shard.acted, "V8: acted upon and not replayed"
        self.acked = state.values

    @invariant()
    def what_was_promised_is_durable(self) -> None:
        """At any moment, were it to stop here."""
        state = self.shard.stopped_now(last_rots=False)
        assert state.values[: len(self.acked)] == self.acked, "acknowledged and not durable"
        assert state.applied >= self.shard.acted, "V8: acted upon and not remembered"

    @invariant()
    def an_older_checkpoint_stands_behind_an_unwitnessed_one(self) -> None:
        """The last round may turn out bad: what the rounds below it name is there."""
        state = self.shard.stopped_now(last_rots=True)
        settled = self.acked[: self.shard.settled]
        assert state.values[: len(settled)] == settled, "given back before it was witnessed"


TestFiles = Files.TestCase
TestFiles.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)


@pytest.mark.check
@pytest.mark.parametrize("rule_left_out", RULES)
def test_a_rule_left_out_is_missed(rule_left_out: str) -> None:
    broken = type("Broken", (Files,), {"broken": rule_left_out})
    search = settings(
        max_examples=600,
        stateful_step_count=40,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    with pytest.raises(AssertionError):
        run_state_machine_as_test(broken, settings=search)


@pytest.mark.parametrize("broken", ["", FLOOR_AGAIN])
def test_the_floor_outlives_the_extent_it_was_written_in(broken: str) -> None:
    shard = Shard(Disk(EXTENTS, BLOCKS), Folder(), broken)
    for task in (shard.produce(1), shard.act()):
        list(task)
    while shard.journal.oldest < EXTENTS:
        list(shard.release(4) if shard.releasable() else shard.produce(0))
    state = shard.recover()
    assert len(state.values) == 1
    assert (state.applied >= shard.acted == 1) == (not broken)
