"""A library writes nothing to stderr: not when a node is missing, nor when it goes away."""

import subprocess
import sys

from tests.headrace.scripted_node import ScriptedNode

PROGRAM = """
import headrace, sys
from headrace.errors import HeadraceError

client = headrace.connect(bootstrap={address!r})
producer = client.producer(delivery_timeout="500ms")
producer.send("single", b"x")
print("sent", flush=True)
sys.stdin.readline()
try:
    producer.send("single", b"y")
except HeadraceError as error:
    print(error.code)
client.close("1s")
"""


def test_a_node_that_goes_away_leaves_stderr_empty(node: ScriptedNode) -> None:
    running = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(address=node.address)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert running.stdout is not None
    assert running.stdout.readline() == "sent\n"
    node.stop()
    out, err = running.communicate("go on\n", timeout=30)
    assert (running.returncode, err) == (0, "")
    assert out in ("DEADLINE_EXCEEDED\n", "OUTCOME_UNKNOWN\n")
