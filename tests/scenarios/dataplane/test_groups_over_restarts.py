"""Consumer groups over restarts and kill -9 of a real node, while records flow."""

import random
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from tests.support.builders.node_objects import EDITOR, furnish, topic_spec
from tests.support.processes.node_process import NodeProcess
from tests.support.processes.platform import wait_until
from tests.support.stories.group_history import History, Member, Observer, Producer

PARTITIONS = 6
RESTARTS = 6


@pytest.fixture
def node(tmp_path: Path) -> Iterator[NodeProcess]:
    with NodeProcess(tmp_path) as running:
        furnish(running)
        yield running


@pytest.mark.check
@pytest.mark.parametrize("seed", [1, 4711])
def test_two_members_lose_nothing_and_share_nothing_while_the_node_is_restarted(
    node: NodeProcess, seed: int
) -> None:
    chance = random.Random(seed)
    node.admin().apply(topic_spec("flow", PARTITIONS))
    topic = node.client(EDITOR).topic("flow")
    address = f"127.0.0.1:{node.grpc_port}"
    history = History()

    with ExitStack() as stack:
        members = [
            stack.enter_context(Member(address, EDITOR, history, name=name, topic=topic))
            for name in ("left", "right")
        ]
        wait_until(lambda: all(member.sessions_count for member in members), "both have joined")
        group = node.client(EDITOR).describe_group("readers").group
        observer = stack.enter_context(Observer(address, EDITOR, history, topic, group))
        with Producer(address, EDITOR, history, topic):
            for turn in range(RESTARTS):
                enough = len(history.commits) + chance.randint(1, 60)
                wait_until(partial(history.has_commits, enough), "commits go on", 120)
                # One alone can commit enough before the other is back: both see every restart.
                wait_until(partial(_joined, members, turn + 1), "both have joined again", 120)
                node.kill() if turn % 2 else node.terminate()
                node.start()
        wait_until(partial(_joined, members, RESTARTS + 1), "both have joined at last", 120)
        wait_until(observer.caught_up, "everything is handled and committed", 120)
        wait_until(lambda: _shared(node), "both have their share again", 120)

    history.check()
    assert {commit.member for commit in history.commits} == {"left", "right"}


def _joined(members: Sequence[Member], times: int) -> bool:
    return all(member.sessions_count >= times for member in members)


def _shared(node: NodeProcess) -> bool:
    described = node.client(EDITOR).describe_group("readers")
    shares = [len(member.assigned) for member in described.members]
    return described.state == "STABLE" and shares == [PARTITIONS // 2] * 2


def test_a_member_without_a_partition_waits_and_takes_over(node: NodeProcess) -> None:
    node.admin().apply(topic_spec("narrow", 2))
    client = node.client(EDITOR)
    first = client.join("a", "narrow")
    first.assigned(2)
    busy = [first, client.join("b", "narrow")]
    for session in busy:
        session.assigned(1)
    idle = client.join("c", "narrow")
    nothing = idle.assigned(0)
    assert (nothing.members, list(nothing.revoked)) == (3, [])
    shares = {row.member: len(row.assigned) for row in client.describe_group("readers").members}
    assert shares == {"a": 1, "b": 1, "c": 0}
    busy[0].close()
    assert idle.assigned(1).members == 2
    for session in (busy[1], idle):
        session.close()


def test_a_member_without_a_partition_comes_back_as_such_after_a_kill(node: NodeProcess) -> None:
    node.admin().apply(topic_spec("narrow", 2))
    names = ("a", "b", "c")
    first = node.client(EDITOR).join("a", "narrow")
    first.assigned(2)
    sessions = [first, *(node.client(EDITOR).join(name, "narrow") for name in names[1:])]
    for session, count in zip(sessions, (1, 1, 0), strict=True):
        session.assigned(count)
    node.kill()
    node.start()
    client = node.client(EDITOR)
    again = [client.join(name, "narrow") for name in names]
    # The same name within its time is the same member: three before, three after.
    for session, count in zip(again, (1, 1, 0), strict=True):
        assert session.assigned(count).members == 3
    for session in again:
        session.close()


def test_members_that_do_not_come_back_after_a_kill_give_up_their_partitions(
    node: NodeProcess,
) -> None:
    node.admin().apply(topic_spec("left_behind", 2))
    gone = node.client(EDITOR).join("gone", "left_behind", timeout_ms=1000)
    before = gone.assigned(2)
    node.client(EDITOR).commit(before.assigned[0], gone.joined.group, 0)
    node.kill()
    node.start()
    stays = node.client(EDITOR).join("stays", "left_behind", timeout_ms=60_000)
    after = stays.assigned(2)
    assert min(row.generation for row in after.assigned) > max(
        row.generation for row in before.assigned
    )
    assert after.members == 1
    stays.close()
