"""Nodes crashed at any point: a few seeds of the simulator in every test run.

`make sim` runs hundreds; native/sim/cluster/sim_cluster.h says what a seed does and checks.
"""

from __future__ import annotations

import pytest

from tests.simulation.run import FAULTS, TOPICS, regressions, run_seed, trace_page

SEEDS = [*range(1001, 1013), *regressions()]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_node_keeps_its_promises_through_crashes(seed: int) -> None:
    outcome = run_seed(seed, steps=1000)
    assert outcome.message == "", f"make sim SEED={seed} TRACE=1"


@pytest.mark.parametrize("nodes", [2, 3])
def test_nodes_of_a_cluster_keep_their_promises(nodes: int) -> None:
    outcome = run_seed(1001, steps=1000, nodes=nodes)
    assert outcome.message == "", f"make sim SEED=1001 NODES={nodes} TRACE=1"
    assert outcome.recoveries > nodes
    assert outcome == run_seed(1001, steps=1000, nodes=nodes)


def test_the_seeds_reach_what_they_are_meant_to_reach() -> None:
    outcomes = [run_seed(seed, steps=1500) for seed in range(1, 9)]
    assert sum(o.recoveries for o in outcomes) > 20
    assert sum(o.batches_acked for o in outcomes) > 1000
    assert sum(o.extents_released for o in outcomes) > 20
    assert sum(o.segments_sealed for o in outcomes) > 20
    assert sum(o.metadata_ops for o in outcomes) > 100
    assert sum(o.closes for o in outcomes) > 50
    assert all(sum(o.topics[name] for o in outcomes) > 0 for name in TOPICS)
    fired = dict(
        zip(FAULTS, (sum(v) for v in zip(*(o.faults for o in outcomes), strict=True)), strict=True)
    )
    crashes = ("crash", "kill", "lost_write", "torn_sector", "torn_cut", "lost_name", "lost_size")
    assert min(fired[kind] for kind in (*crashes, "cut_request", "recovery_crash")) > 0


def test_the_same_seed_gives_the_same_world() -> None:
    first = run_seed(77, steps=400, trace=True)
    second = run_seed(77, steps=400, trace=True)
    assert first == second
    assert first.hash != run_seed(78, steps=400).hash
    assert "crash" in first.trace


def test_a_trace_becomes_a_page() -> None:
    outcome = run_seed(3, steps=300, trace=True)
    page = trace_page(outcome)
    assert page.count("<tr") > 3
    assert "everything held" in page
