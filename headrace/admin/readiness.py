"""Whether what was wished is so, as a body of the REST API says it. Pure; refuses to wait."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.errors import Conflict
from headrace.transport.rest import Resource


def is_observed(resource: Resource) -> bool:
    """A worker has looked at this generation."""
    status = resource.get("status")
    return isinstance(status, dict) and status.get("observed_generation") == resource["generation"]


def is_ready(resource: Resource) -> bool:
    """The wish of this generation is reality: observed_generation = generation, and Ready is
    True."""
    return is_observed(resource) and str(_ready(resource).get("status")) in ("True", "TRUE")


def _ready(resource: Resource) -> Resource:
    """The condition Ready; empty if there is none."""
    status = resource.get("status")
    conditions = status.get("conditions") if isinstance(status, dict) else None
    return next(
        (
            c
            for c in (conditions if isinstance(conditions, list) else [])
            if isinstance(c, dict) and c.get("type") == "Ready"
        ),
        {},
    )


def is_unreconciled(spec: Mapping[str, object]) -> bool:
    """Whether a change turns reconciliation off."""
    return spec.get("paused") is True or spec.get("managed") is False


def refuse_unreconciled(resource: Resource) -> None:
    """Waiting for what no worker does would only end at the deadline.

    :raises Conflict: TOPIC_PAUSED or TOPIC_UNMANAGED.
    """
    reason = _ready(resource).get("reason") if is_observed(resource) else None
    name = f"{resource['stream']}/{resource['name']}" if resource.get("stream") else resource["id"]
    if reason == "Paused":
        raise Conflict(
            f"{name} is paused: the change is stored but not applied",
            code="TOPIC_PAUSED",
            hint=f"Resume reconciliation: headrace topic alter {name} --no-paused",
        )
    if reason == "Unmanaged":
        raise Conflict(
            f"{name} is not managed: the change is stored but not applied",
            code="TOPIC_UNMANAGED",
            hint=f"Manage the topic: headrace topic alter {name} --managed",
        )


def why_not_ready(resource: Resource) -> str:
    """The conditions, in words."""
    status = resource.get("status")
    conditions = status.get("conditions") if isinstance(status, dict) else None
    said = [
        f"{c.get('type')}={c.get('status')}: {c.get('reason', '')} {c.get('message', '')}".strip()
        for c in (conditions if isinstance(conditions, list) else [])
        if isinstance(c, dict)
    ]
    return "; ".join(said) or "it has not been reconciled yet"
