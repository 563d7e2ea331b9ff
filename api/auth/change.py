"""A caller's change: who makes it is known to all that it writes, and it is made once."""

from collections.abc import Callable

from fastapi.responses import JSONResponse
from sqlalchemy.orm import Session

from api.auth.audit_chain import Actor
from api.auth.permissions import Caller
from api.http.idempotency import Facts, run_once
from api.http.reply import Reply
from api.http.resource import CreateCommand


def first_columns(actor: Actor, command: CreateCommand) -> dict[str, object]:
    """The columns of a new row that every resource has: what the command says of them, and who
    made it when."""
    return {
        "display_name": command.display_name,
        "labels": command.labels,
        "annotations": command.annotations,
        "generation": 1,
        "revision": 1,
        "created_at": actor.now,
        "updated_at": actor.now,
        "created_by": actor.caller.principal_id,
    }


def change(facts: Facts, caller: Caller, action: Callable[[Session, Actor], Reply]) -> JSONResponse:
    """Runs a change in its transaction and answers it, or answers as the first request was."""
    return run_once(
        facts,
        caller,
        lambda session, now: action(session, Actor(caller, facts.request_id, now)),
    )
