"""close() while another thread or task waits for a node that accepts connections and never answers:
the call that waits raises Closed, never CancelledError."""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

from headrace.async_client import AsyncClient
from headrace.client import Client
from headrace.errors import Closed
from headrace.settings import Settings

WAIT_S = 60.0

CALLS: dict[str, Callable[[Client], object]] = {
    "send": lambda client: client.topic("orders").send(b"x"),
    "poll": lambda client: client.topic("orders").consume(start="earliest").poll("60s"),
    "offsets_at": lambda client: client.topic("orders").offsets_at(timedelta(0)),
}


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(WAIT_S)
        yield server


def settings_of(server: socket.socket) -> Settings:
    address = f"127.0.0.1:{server.getsockname()[1]}"
    return Settings(bootstrap=(address,), api_url="http://127.0.0.1:1", key="hr_user_test")


@pytest.mark.parametrize("name", CALLS)
def test_a_thread_that_waits_gets_closed(silent: socket.socket, name: str) -> None:
    client = Client(settings_of(silent))
    raised: list[BaseException] = []

    def call() -> None:
        try:
            CALLS[name](client)
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    with silent.accept()[0]:
        client.close("100ms")
        thread.join(WAIT_S)
    assert [type(error) for error in raised] == [Closed]


def test_a_task_that_waits_gets_closed(silent: socket.socket) -> None:
    async def main() -> None:
        client = AsyncClient(settings_of(silent))
        sending = asyncio.ensure_future(client.topic("orders").send(b"x"))
        connection, _ = await asyncio.to_thread(silent.accept)
        with connection:
            await client.close("100ms")
            with pytest.raises(Closed):
                await sending
        assert not sending.cancelled()

    asyncio.run(asyncio.wait_for(main(), WAIT_S))


def test_a_task_that_is_cancelled_itself_stays_cancelled(silent: socket.socket) -> None:
    async def main() -> None:
        async with AsyncClient(settings_of(silent)) as client:
            sending = asyncio.ensure_future(client.topic("orders").send(b"x"))
            connection, _ = await asyncio.to_thread(silent.accept)
            with connection:
                sending.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await sending
                await client.close("100ms")

    asyncio.run(asyncio.wait_for(main(), WAIT_S))
