"""Why a call to a node failed, and with it the pass that made it."""

from datetime import timedelta
from enum import StrEnum


class FailureKind(StrEnum):
    """Why a pass failed, which decides when the next one comes."""

    TRANSIENT = "TRANSIENT"  # back off with full jitter
    UNREACHABLE = "UNREACHABLE"  # no node answered: try again soon, and count no attempt
    CONFLICT = "CONFLICT"  # a newer command was applied: read again at once, then back off
    INVALID = "INVALID"  # retrying cannot help: wait for a new generation or the resync
    THROTTLED = "THROTTLED"  # after the delay that the node named


class NodeFailure(Exception):
    """Raised inside a pass; the loop makes a :class:`Failed` of it."""

    def __init__(
        self, kind: FailureKind, code: str, message: str, *, after: timedelta | None = None
    ) -> None:
        super().__init__(f"{code}: {message}")
        self.kind = kind
        self.code = code
        self.message = message
        self.after = after
