"""A library writes nothing to stderr: not when a node is missing, nor when it goes away."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.headrace.scripted_node import ScriptedNode

SENDS = """
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

READS = """
import gc, headrace

with headrace.connect(bootstrap={address!r}) as client:
    with client.consume("single", group="billing", start="earliest") as consumer:
        for message in consumer:
            # A stream that nobody ended is told of by the collector, if it finds it.
            gc.collect()
            print(message.text(), flush=True)
            if message.text() == "last":
                break
"""

GIVES_UP = """
import asyncio, gc, headrace


async def main() -> None:
    async with headrace.aconnect(bootstrap={address!r}) as client:
        for name in ("nowhere", "elsewhere"):
            sending = asyncio.ensure_future(client.topic(name).send(b"x"))
            await asyncio.sleep(0)
            sending.cancel()
            await asyncio.wait([sending])
        # Asked later, answered later.
        await client.topic("single").send(b"x")
    gc.collect()


asyncio.run(main())
"""


@contextmanager
def program(text: str, node: ScriptedNode) -> Iterator[subprocess.Popen[str]]:
    """A client in a process of its own."""
    with subprocess.Popen(
        [sys.executable, "-c", text.format(address=node.address)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        yield running
        running.kill()


def test_a_node_that_goes_away_leaves_stderr_empty(node: ScriptedNode) -> None:
    with program(SENDS, node) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "sent\n"
        node.stop()
        out, err = running.communicate("go on\n", timeout=120)
    assert (running.returncode, err) == (0, "")
    assert out in ("DEADLINE_EXCEEDED\n", "OUTCOME_UNKNOWN\n")


def test_sessions_of_a_group_that_break_leave_stderr_empty(node: ScriptedNode) -> None:
    with program(READS, node) as running:
        assert running.stdout is not None
        for value in ("first", "second", "third", "last"):
            node.append("single", 0, value.encode())
            # What was not committed when the session broke comes once more.
            while running.stdout.readline() != value + "\n":
                assert running.poll() is None
            if value != "last":
                node.stop()
                node.start()
        _, err = running.communicate(timeout=120)
    assert (running.returncode, err) == (0, "")


def test_questions_that_nobody_waits_for_any_more_leave_stderr_empty(node: ScriptedNode) -> None:
    with program(GIVES_UP, node) as running:
        _, err = running.communicate(timeout=120)
    assert (running.returncode, err) == (0, "")
