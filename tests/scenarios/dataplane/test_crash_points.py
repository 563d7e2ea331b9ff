"""R2 with a real node: kill -9 exactly at the n-th write, sync or rename of the whole process.

strace counts and kills: the simulator sweeps every point of a store (tests/simulation), this shows
at a few that a process, its files and its Python side come back as well. Two boots, and what was
acknowledged is there.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import grpc
import pytest

from tests.support.builders.node_objects import EDITOR, furnish
from tests.support.processes.node_process import NodeProcess

pytestmark = [pytest.mark.check, pytest.mark.alone]

BATCHES_MAX = 600
# Of one thread. Beginnings are formats and first rounds, the rest is traffic.
POINTS = [
    ("pwrite64", 2),
    ("pwrite64", 60),
    ("pwrite64", 333),
    ("pwritev,pwritev2", 1),
    ("pwritev,pwritev2", 40),
    ("fsync,fdatasync", 1),
    ("fsync,fdatasync", 3),
    ("rename,renameat,renameat2", 1),
    ("rename,renameat,renameat2", 2),
]


def killed_at(calls: str, number: int) -> Sequence[str]:
    """The node's command line under a strace that kills it inside that system call."""
    inject = f"inject={calls}:signal=SIGKILL:when={number}"
    traced = ("strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={calls}", "-e", inject)
    return (*traced, sys.executable, "-m", "dataplane")


def live_until_killed(node: NodeProcess) -> list[int]:
    """Offsets acknowledged before the node died; it must die."""
    acked: list[int] = []
    try:
        node.start()
        furnish(node, "swept")
        client = node.client(EDITOR)
        topic = client.topic("swept")
        for sequence in range(BATCHES_MAX):
            values = [b"%d" % sequence]
            acked.append(client.produce(topic, 0, values, sequence=sequence).base_offset)
    except grpc.RpcError:
        node.kill()
        return acked
    except RuntimeError:  # before it was ready; start ended it
        return acked
    raise AssertionError("the call to die in never came")


@pytest.mark.parametrize(("calls", "number"), POINTS)
def test_a_node_killed_inside_a_system_call_boots_twice(
    tmp_path: Path, calls: str, number: int
) -> None:
    acked = live_until_killed(NodeProcess(tmp_path, program=killed_at(calls, number)))
    with NodeProcess(tmp_path) as node:
        node.kill()
        node.start()
        # Again: what was answered is kept, what was not is repeated.
        furnish(node, "swept")
        client = node.client(EDITOR)
        topic = client.topic("swept")
        next_sequence = acked[-1] + 1 if acked else 0
        # One batch that was not acknowledged may be there all the same: this repeats it then.
        reply = client.produce(topic, 0, [b"%d" % next_sequence], sequence=next_sequence)
        assert acked == list(range(next_sequence))
        assert reply.base_offset == next_sequence
        assert client.values(topic, 0) == [b"%d" % number for number in range(next_sequence + 1)]
