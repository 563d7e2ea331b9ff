"""`crash_offset_reuse`: a confirmed offset is never given to another message, kill -9 or not."""

from pathlib import Path

import pytest

from tests.support.builders.node_objects import EDITOR, furnish
from tests.support.processes.node_process import NodeProcess

pytestmark = [pytest.mark.check, pytest.mark.alone]

MESSAGES = 5
LIVES = 3


def test_crash_offset_reuse_never_happens(tmp_path: Path) -> None:
    node = NodeProcess(tmp_path)
    confirmed: dict[int, bytes] = {}
    with node:
        furnish(node, "single")
        client = node.client(EDITOR)
        topic = client.topic("single")
        for life in range(LIVES):
            for number in range(MESSAGES):
                value = b"life %d message %d" % (life, number)
                reply = client.produce(topic, 0, [value], sequence=len(confirmed))
                assert reply.base_offset not in confirmed
                confirmed[reply.base_offset] = value
            node.kill()
            node.start()
            client = node.client(EDITOR)
            fetched = client.fetch(topic, 0)
            assert fetched.high_watermark == len(confirmed)
            assert all(value in fetched.batches for value in confirmed.values())
        last = client.produce(topic, 0, [b"after"], sequence=len(confirmed))
        assert last.base_offset == LIVES * MESSAGES
        assert sorted(confirmed) == list(range(LIVES * MESSAGES))
