"""Ports: chosen once, checked before anything starts."""

import socket

import pytest

from api.embedded.ports import HOST, Ports, choose_ports
from headrace.errors import Conflict


def test_zero_chooses_distinct_free_ports() -> None:
    ports = choose_ports(0, {}, {})
    assert len({ports.api, ports.node, ports.node_http}) == 3


def test_a_port_in_use_is_refused_by_its_number() -> None:
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(Conflict, match=str(port)) as refused:
            choose_ports(None, {"port": port}, {})
    assert refused.value.code == "PORT_IN_USE"


def test_the_file_says_the_ports_unless_the_command_line_does() -> None:
    free = choose_ports(0, {}, {})
    node = {"port": free.node, "http_port": free.node_http}
    assert choose_ports(None, {"port": free.api}, node) == free


def test_ports_override_the_file_by_the_environment() -> None:
    assert Ports(1, 2, 3).overrides() == {
        "HEADRACE_API__PORT": "1",
        "HEADRACE_NODE__PORT": "2",
        "HEADRACE_NODE__HTTP_PORT": "3",
    }
