"""Who may do what: four fixed roles, the operator, and a report run. Deny by default.

The operator runs the service: the owner key of the first run is one. It may create organizations,
clusters, nodes and report runs, give another organization its first key, and revoke the keys of
operators, which an owner may not: no caller revokes more than it has. It is otherwise a
member of its own organization like any other: it does not read another tenant's topics.
"""

from dataclasses import dataclass
from typing import Final, Literal

Role = Literal["owner", "editor", "viewer", "billing-viewer"]

BILLING_VIEWER: Final = frozenset({"orgs:read", "projects:read", "usage:read", "invoices:read"})
VIEWER: Final = BILLING_VIEWER | {
    "clusters:read",
    "streams:read",
    "topics:read",
    "holds:read",
    "groups:read",
    "messages:read",
    "operations:read",
    "retention:read",
}
EDITOR: Final = VIEWER | {
    "streams:create",
    "streams:delete",
    "topics:create",
    "topics:update",
    "topics:delete",
    "messages:publish",
    "keys:read",
}
OWNER: Final = EDITOR | {
    "projects:create",
    "projects:delete",
    "objects:force",
    "holds:create",
    "holds:release",
    "keys:create",
    "keys:revoke",
    "audit:read",
}
OPERATOR: Final = frozenset(
    {
        "orgs:create",
        "operators:revoke",
        "clusters:create",
        "nodes:create",
        "nodes:read",
        "reports:create",
        "reports:read",
        "reports:inputs",
    }
)
RUN: Final = frozenset({"reports:read", "reports:inputs", "reports:publish"})

ROLES: Final[dict[str, frozenset[str]]] = {
    "owner": OWNER,
    "editor": EDITOR,
    "viewer": VIEWER,
    "billing-viewer": BILLING_VIEWER,
}
PERMISSIONS: Final = OWNER | OPERATOR | RUN


@dataclass(frozen=True, slots=True)
class Caller:
    """Who is asking. ``run_id`` is set for the one-run token of a report, which has no role."""

    principal_id: str
    org_id: str
    role: Role | None
    project_id: str | None = None
    operator: bool = False
    run_id: str | None = None

    def may(self, permission: str) -> bool:
        """Whether the caller's role holds a permission."""
        if self.run_id is not None:
            return permission in RUN
        if self.operator and permission in OPERATOR:
            return True
        return self.role is not None and permission in ROLES[self.role]
