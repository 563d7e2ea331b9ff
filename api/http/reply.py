"""What a change answers: the object after it, its operation, and for a dry run its plan."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Generic, Protocol, TypeAlias, TypeVar

from fastapi import Response
from pydantic import JsonValue as Json

from api.http.resource import ResourceBody, body_json

Body = TypeVar("Body", bound=ResourceBody)
Read = TypeVar("Read", bound="Tagged")
# What a dry run shows. A function, if a node is asked for it: once the transaction is over.
Plan: TypeAlias = dict[str, Json] | Callable[[], dict[str, Json]]


@dataclass(frozen=True, slots=True)
class Changed(Generic[Body]):
    """An object after a change, and the operation that makes it so, if there is anything to do.
    ``plan`` says what the change does beyond the object: a dry run shows it."""

    body: Body
    operation_id: str | None
    plan: Plan | None = None


class Tagged(Protocol):
    """A body that says its revision."""

    etag: str


@dataclass(frozen=True, slots=True)
class Reply:
    """What a change answers. ``secret_of`` names the object whose secret the body holds; ``plan``
    is shown by a dry run only."""

    status: int
    body: dict[str, Json]
    headers: dict[str, str] = field(default_factory=dict)
    secret_of: str | None = None
    plan: Plan | None = None


def tagged(response: Response, body: Read) -> Read:
    """The reply to a read: the body, and its ETag."""
    response.headers["ETag"] = f'"{body.etag}"'
    return body


def changed(result: Changed[Body], path: str) -> Reply:
    """The reply to a change: 202 with its operation, or 200 if there is nothing to do."""
    reply = created(
        result.body,
        path,
        status=202 if result.operation_id else 200,
        operation_id=result.operation_id,
    )
    return replace(reply, plan=result.plan)


def created(
    body: ResourceBody, path: str, *, status: int = 201, operation_id: str | None = None
) -> Reply:
    """The reply to a create or a change: body, Location, ETag, and the operation if there is
    one."""
    headers = {"Location": f"{path}/{body.id}", "ETag": f'"{body.etag}"'}
    if operation_id is not None:
        headers["Operation-Id"] = operation_id
    return Reply(status, body_json(body), headers)
