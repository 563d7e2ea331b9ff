"""The fixtures of the control plane."""

from tests.support.builders.control_plane import (
    _cheap_hashes,
    _logs,
    application,
    caller,
    clock,
    installation,
    node,
    other,
    postgresql,
    process,
    road,
    service,
    sqlite,
    stored,
    wall,
)

__all__ = [
    "_cheap_hashes",
    "_logs",
    "application",
    "caller",
    "clock",
    "installation",
    "node",
    "other",
    "postgresql",
    "process",
    "road",
    "service",
    "sqlite",
    "stored",
    "wall",
]
