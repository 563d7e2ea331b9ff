"""What applying one command leads to, and the rule of fences that all commands share.

Owns `Done` and the shape of results. Refuses to know any object.
"""

from dataclasses import dataclass
from typing import Final

from dataplane.errors import Refused
from dataplane.metadata.state import Fence
from dataplane.wire import node_pb2 as wire

NO_FENCE: Final = Fence(0, 0, 0)


@dataclass(frozen=True, slots=True)
class Done:
    """A result and what follows from it.

    `delta` is what the shards' tables change by; `groups` the numbers of the groups that changed;
    `closing` that of the topic which an op decided to delete, 0 = none; `holding` that of the topic
    whose holds changed, 0 = none.
    """

    result: wire.Result
    delta: bytes = b""
    groups: tuple[int, ...] = ()
    closing: int = 0
    holding: int = 0


def applied(
    *, number: int, revision: int, changed: bool, op: int, deleted: bool = False
) -> wire.Result:
    """The result of a command; `number` of the topic or principal, `revision` of the topic."""
    return wire.Result(
        applied=wire.ApplyReply(
            metadata_op=op,
            number=number,
            created_revision=revision,
            changed=changed,
            deleted=deleted,
        )
    )


def check_fence(what: str, fence: Fence, stored: Fence) -> None:
    """Raises Refused if a newer command was applied to this object."""
    if fence < stored:
        raise Refused(
            "COMMAND_FENCED",
            f"{what} was last commanded with fence {tuple(stored)}; {tuple(fence)} is older",
            hint="read the spec again; another worker has taken over",
        )
