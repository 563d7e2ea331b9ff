"""What passes did to the world, kept with the status: which command, why, and what was answered.
Pure.

The last few are enough to explain an object. A command that is repeated for the same reason with
the same answer is one entry with the time of its first: a status that only counts would be written
at every poll.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from pydantic import JsonValue as Json

from api.http.resource import format_instant
from api.node.fence import Fence
from api.reconcile.outcome import CommandRecord
from dataplane.wire import node_pb2

ACTIONS_MAX: Final = 10
DETAIL: Final = "actions"


def command_record(what: str, why: str, fence: Fence, reply: node_pb2.ApplyReply) -> CommandRecord:
    """A command, and what the cluster said to it."""
    outcome = "gone" if reply.deleted else "applied" if reply.changed else "so already"
    return CommandRecord(
        what=what,
        why=why,
        generation=fence.generation,
        fence=f"{fence.db_epoch}.{fence.generation}.{fence.lease_token}",
        outcome=outcome,
        answer=f"{outcome}, metadata op {reply.metadata_op}",
    )


def with_commands(previous: Json, commands: Iterable[CommandRecord], now: datetime) -> list[Json]:
    """The entries with those of a pass after them, without repetitions."""
    entries = list(previous) if isinstance(previous, list) else []
    for command in commands:
        last = entries[-1] if entries else None
        if not isinstance(last, dict) or not _repeats(last, command):
            entries.append(
                {
                    "at": format_instant(now),
                    "what": command.what,
                    "why": command.why,
                    "generation": command.generation,
                    "fence": command.fence,
                    "outcome": command.outcome,
                    "answer": command.answer,
                }
            )
    return entries[-ACTIONS_MAX:]


def lately_sent(previous: Json, what: str, generation: int, now: datetime) -> timedelta:
    """For how long a command of a generation has been answered; for ever if it is not known."""
    entries = previous if isinstance(previous, list) else []
    times = [
        datetime.fromisoformat(str(entry["at"]))
        for entry in entries
        if isinstance(entry, dict) and (entry["what"], entry["generation"]) == (what, generation)
    ]
    return now - times[-1] if times else timedelta.max


def _repeats(entry: dict[str, Json], command: CommandRecord) -> bool:
    return (entry["what"], entry["why"], entry["generation"], entry["outcome"]) == (
        command.what,
        command.why,
        command.generation,
        command.outcome,
    )
