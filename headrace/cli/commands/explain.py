"""`headrace explain OBJECT`: why an object is as it is, and what happens next."""

from __future__ import annotations

import click

from headrace.cli.describe import CONDITIONS
from headrace.cli.describe import describe as show
from headrace.cli.output import Column, path
from headrace.cli.watch import WatchedVerb

COLUMNS = (
    Column("object", lambda row: f"{path('object', 'kind')(row)}/{path('object', 'name')(row)}"),
    Column("id", path("object", "id")),
    Column("summary", path("summary")),
)
_STEPS = (
    Column("at", path("at")),
    Column("what", path("what")),
    Column("why", path("why")),
    Column("next", path("next")),
)
_OPERATIONS = (
    Column("operation", path("id")),
    Column("kind", path("kind")),
    Column("state", path("state")),
    Column("created", path("created_at")),
    Column("finished", path("finished_at")),
)


@click.command(cls=WatchedVerb)
@click.argument("name", metavar="OBJECT")
def explain(name: str) -> None:
    """Explain an object's state and next action.

    OBJECT is an id, or KIND/NAME: topic/orders, topic/billing/orders, stream/billing.
    """
    from headrace.cli.options import client

    with client() as c:
        found = c.admin.explain(name)
    lists = ((["steps"], _STEPS), (["conditions"], CONDITIONS), (["operations"], _OPERATIONS))
    show(found, COLUMNS, name=path("object", "id"), lists=lists)
