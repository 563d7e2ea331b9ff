"""Messages as a browser gets them, as far as no node is needed."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from api.http.resource import body_json
from api.messages.service import message_body
from api.messages.tail import follow
from api.node.messages import Place, instant
from api.node.pool import NodePool
from headrace.wire import stream_pb2

NOBODY_LISTENS = Place("127.0.0.1:1", "default", "default/a", 1, "Bearer none")


@pytest.mark.parametrize(("begin", "place"), [({}, ""), ({0: 7}, "0:7")])
def test_a_tail_that_is_refused_leaves_its_reader_where_it_was(
    begin: dict[int, int], place: str
) -> None:
    async def events() -> list[str]:
        with NodePool(Path("unread")) as nodes:
            followed = follow(nodes, NOBODY_LISTENS, [0], begin, request_id="r1")
            return [each async for each in followed]

    last = asyncio.run(events())[-1].splitlines()
    assert last[:2] == [f"id: {place}", "event: refused"]


def test_a_time_that_no_calendar_has_is_shown_as_its_last_moment() -> None:
    assert instant(1_800_000_000_000_001) == datetime(2027, 1, 15, 8, 0, 0, 1, UTC)
    message = stream_pb2.Message(value=b"a", timestamp_us=2**63 - 1)
    stored = stream_pb2.StoredMessage(offset=0, append_time_us=0, message=message)
    shown = body_json(message_body(0, stored))
    assert shown["timestamp"] == "9999-12-31T23:59:59.999999Z"
    assert instant(-(2**63)).year == 1
