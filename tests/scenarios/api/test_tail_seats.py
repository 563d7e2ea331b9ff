"""The seats of those who follow a topic: no more are taken than there are, and each is left."""

import asyncio
import socket
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from starlette.requests import ClientDisconnect
from starlette.types import Message

from api.bootstrap.seed import readdress
from api.messages.tail import TAILS_OF_ORGANIZATION_MAX, TailResponse, Tails
from tests.support.builders.control_plane import Service
from tests.support.processes.platform import wait_until

TOO_MANY = 3


def test_of_many_who_come_at_once_no_more_wait_for_the_node_than_have_a_seat(
    service: Service,
) -> None:
    path = f"/v1/topics/{service.topic()['id']}/messages/tail"
    headers = {**service.owner, "Last-Event-ID": "0:0"}
    with (
        ThreadPoolExecutor(TAILS_OF_ORGANIZATION_MAX + TOO_MANY) as pool,
        # Connections are taken, and nothing is said.
        socket.create_server(("127.0.0.1", 0), backlog=TAILS_OF_ORGANIZATION_MAX) as silent,
    ):
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        readdress(service.database, node_id=service.first.identity.node_id, node_address=address)
        answers = [
            pool.submit(service.client.get, path, headers=headers)
            for _ in range(TAILS_OF_ORGANIZATION_MAX + TOO_MANY)
        ]
        wait_until(
            lambda: sum(each.done() for each in answers) == TOO_MANY, "some are refused", 4.0
        )
        codes = [each.result().json()["code"] for each in answers if each.done()]
        assert codes == ["TOO_MANY_TAILS"] * TOO_MANY
    assert sum(each.result().status_code == 200 for each in answers) == TAILS_OF_ORGANIZATION_MAX


def test_a_seat_is_left_though_its_reader_went_before_the_first_event() -> None:
    async def events() -> AsyncIterator[str]:
        yield "never read"

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(_: Message) -> None:
        raise OSError("the reader is gone")

    async def come_and_go(tails: Tails) -> None:
        answer = TailResponse(events(), tails.seat("org_1"))
        scope = {"type": "http", "asgi": {"spec_version": "2.4"}}
        with pytest.raises(ClientDisconnect):
            await answer(scope, receive, send)

    tails = Tails()
    for _ in range(TAILS_OF_ORGANIZATION_MAX + 1):
        asyncio.run(come_and_go(tails))
