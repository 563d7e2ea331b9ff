"""A scripted node, and clients of it."""

from collections.abc import Iterator

import pytest

from headrace.client import Client
from headrace.settings import Settings
from tests.headrace.scripted_api import ScriptedApi
from tests.headrace.scripted_node import ScriptedNode


@pytest.fixture
def node() -> Iterator[ScriptedNode]:
    node = ScriptedNode({"orders": 4, "single": 1}).start()
    yield node
    node.stop()


@pytest.fixture
def settings(node: ScriptedNode) -> Settings:
    return Settings(bootstrap=(node.address,), api_url="http://127.0.0.1:1", key="hr_user_test")


@pytest.fixture
def client(settings: Settings) -> Iterator[Client]:
    with Client(settings) as client:
        yield client


@pytest.fixture
def api() -> Iterator[ScriptedApi]:
    api = ScriptedApi().start()
    yield api
    api.stop()
