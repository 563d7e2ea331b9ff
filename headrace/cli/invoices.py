"""`headrace invoice list|get`: what each month costs, as the last usage report drew it."""

from __future__ import annotations

import click

from headrace.cli.main import Tree
from headrace.cli.options import client, printer
from headrace.cli.output import Column, Row, note, path
from headrace.cli.watching import WatchedVerb

COLUMNS = (
    Column("period", path("period")),
    Column("state", path("state")),
    Column("blocked", path("blocked")),
    Column("total", path("total"), right=True),
    Column("per month", path("amount_per_month"), right=True),
    Column("currency", path("currency")),
    Column("as of", path("as_of")),
    Column("id", path("id")),
    Column("organization", path("organization_id")),
    Column("run", path("run_id"), wide=True),
)
LINES = (
    Column("line", path("line"), right=True),
    Column("sku", path("sku")),
    Column("quantity", path("quantity"), right=True),
    Column("unit", path("unit")),
    Column("exact", path("amount_exact"), right=True),
    Column("amount", path("amount"), right=True),
    Column("currency", path("currency")),
    Column("description", path("description")),
    Column("unit price", path("unit_price"), right=True, wide=True),
)


@click.group(cls=Tree)
def invoice() -> None:
    """What a month costs, line by line."""


@invoice.command("list", cls=WatchedVerb)
def list_invoices() -> None:
    """List the invoices of the organization."""
    with client() as c:
        found = c.admin.invoices()
    printer().many(found, COLUMNS, name="id")
    if not found:
        note("No report has run yet. Run one: headrace report run usage --wait")


@invoice.command(cls=WatchedVerb)
@click.argument("name")
def get(name: str) -> None:
    """Show the invoice NAME: an id, or a period like 2026-11."""
    with client() as c:
        found = c.admin.invoice(name)
    printer().listing(found, _rows(found, "lines"), LINES, name="sku")
    total = f"{found.get('total')} {found.get('currency')}"
    note(f"{found.get('state')} {found.get('period')}: {total}, as of {found.get('as_of')}")
    red = [
        f"{path('name')(check)}: {path('detail')(check)}"
        for check in _rows(found, "reconciliation")
        if check.get("state") != "GREEN"
    ]
    for line in red:
        note(f"Blocked by {line}")


def _rows(body: Row, member: str) -> list[Row]:
    found = body.get(member)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
