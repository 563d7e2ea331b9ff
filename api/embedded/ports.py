"""Ports: which ones to use, and that they are free before anything is started."""

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from headrace.errors import Conflict

HOST: Final = "127.0.0.1"
API_PORT: Final = 8460


@dataclass(frozen=True, slots=True)
class Ports:
    """Where the three servers of an embedded service listen."""

    api: int
    node: int
    node_http: int

    def overrides(self) -> dict[str, str]:
        """As environment variables, which beat the file."""
        return {
            "HEADRACE_API__PORT": str(self.api),
            "HEADRACE_NODE__PORT": str(self.node),
            "HEADRACE_NODE__HTTP_PORT": str(self.node_http),
        }


def choose_ports(
    wanted: int | None, api: Mapping[str, object], node: Mapping[str, object]
) -> Ports:
    """The ports of this start: those of ``--port`` (three in a row; 0: free ones), else those of
    the file, else 8460, 8461 and 8462.

    :raises Conflict: PORT_IN_USE, with the port.
    """
    if wanted == 0:
        return Ports(*free_ports(3))
    first = wanted or API_PORT
    configured = {} if wanted else {**api}
    ports = Ports(
        _number(configured, "port", first),
        _number({} if wanted else node, "port", first + 1),
        _number({} if wanted else node, "http_port", first + 2),
    )
    for port in (ports.api, ports.node, ports.node_http):
        check_free(port)
    return ports


def _number(section: Mapping[str, object], key: str, default: int) -> int:
    value = section.get(key, default)
    return value if isinstance(value, int) else default


def free_ports(count: int) -> list[int]:
    """Distinct free ports: all are held until all are known."""
    held = [socket.socket() for _ in range(count)]
    try:
        for each in held:
            each.bind((HOST, 0))
        return [int(each.getsockname()[1]) for each in held]
    finally:
        for each in held:
            each.close()


def check_free(port: int) -> None:
    """Checks that no process listens on a port of this host.

    :raises Conflict: PORT_IN_USE, with the port.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            raise Conflict(
                f"Port {port} is in use",
                code="PORT_IN_USE",
                hint="Stop what listens there, or take free ports: "
                "headrace up --port 0, make up PORT=0",
            ) from None
