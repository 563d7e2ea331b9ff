"""A fork: gRPC does not survive one, so nobody may hang in it, and what can work works."""

import subprocess
import sys

from tests.headrace.scripted_node import ScriptedNode

USED_BEFORE = """
import os, sys
import headrace
from headrace.errors import Closed

client = headrace.connect(bootstrap={address!r})
client.topic("single").send(b"parent")
# What gRPC leaves behind in a child hurts only now and then.
for _ in range(8):
    child = os.fork()
    if child == 0:
        told = 0
        try:
            client.topic("single").send(b"never")
        except Closed:
            told += 1
        try:
            headrace.connect(bootstrap={address!r})
        except Closed:
            told += 1
        sys.exit(0 if told == 2 else 1)
    _, status = os.waitpid(child, 0)
    if status != 0:
        sys.exit(os.waitstatus_to_exitcode(status))
client.topic("single").send(b"parent again")
"""

MADE_BEFORE = """
import os, sys
import headrace

client = headrace.connect(bootstrap={address!r})
child = os.fork()
if child == 0:
    with headrace.connect(bootstrap={address!r}) as own:
        own.topic("single").send(b"child")
    sys.exit(0)
_, status = os.waitpid(child, 0)
client.topic("single").send(b"parent")
sys.exit(os.waitstatus_to_exitcode(status))
"""


def run(program: str, node: ScriptedNode) -> tuple[int, bytes]:
    done = subprocess.run(
        [sys.executable, "-c", program.format(address=node.address)],
        capture_output=True,
        check=False,
        timeout=120,
    )
    return done.returncode, done.stderr


def test_a_child_of_a_connected_process_is_told_and_the_parent_goes_on(node: ScriptedNode) -> None:
    assert run(USED_BEFORE, node) == (0, b"")
    assert node.values("single") == [b"parent", b"parent again"]


def test_a_client_that_was_only_made_does_not_hinder_the_child(node: ScriptedNode) -> None:
    assert run(MADE_BEFORE, node) == (0, b"")
    assert node.values("single") == [b"child", b"parent"]
