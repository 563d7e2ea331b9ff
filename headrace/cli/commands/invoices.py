"""`headrace invoice list|get`: the invoice of each month, from the latest usage report."""

from __future__ import annotations

import click

from headrace.cli.main import Tree
from headrace.cli.options import client, printer
from headrace.cli.output import Column, Row, note, path
from headrace.cli.watch import WatchedVerb


def _projection(row: Row) -> object:
    return path("amount_per_month")(row) or "not enough data"


COLUMNS = (
    Column("period", path("period")),
    Column("state", path("state")),
    Column("blocked", path("blocked")),
    Column("total", path("total"), right=True),
    Column("monthly projection", _projection, right=True),
    Column("currency", path("currency")),
    Column("as of", path("as_of")),
    Column("organization", path("organization")),
    Column("id", path("id")),
    Column("organization id", path("organization_id"), wide=True),
    Column("rate from", path("rate_from"), wide=True),
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
    """Show monthly invoices."""


@invoice.command("list", cls=WatchedVerb)
def list_invoices() -> None:
    """List the invoices of the organization."""
    with client() as c:
        found = c.admin.invoices()
    printer().many(found, COLUMNS, name="id")
    if not found:
        note("No report has run yet. Run one with: headrace report run usage --wait")


@invoice.command(cls=WatchedVerb)
@click.argument("name")
def get(name: str) -> None:
    """Show an invoice. NAME is an id, or a period such as 2026-11."""
    with client() as c:
        found = c.admin.invoice(name)
    printer().listing(found, _rows(found, "lines"), LINES, name="sku")
    total = f"{found.get('total')} {found.get('currency')}"
    note(f"{found.get('state')} {found.get('period')}: {total}, as of {found.get('as_of')}")
    note(_projected(found))
    red = [
        f"{path('name')(check)}, {path('title')(check)}: {path('detail')(check)}"
        if check.get("title")
        else f"{path('name')(check)}: {path('detail')(check)}"
        for check in _rows(found, "reconciliation")
        if check.get("state") != "GREEN"
    ]
    for line in red:
        note(f"Blocked by {line}")


def _projected(found: Row) -> str:
    if not found.get("amount_per_month"):
        return "Monthly projection: not enough data (less than one hour of usage)"
    amount = f"{found['amount_per_month']} {found.get('currency')}"
    if str(found.get("as_of")) >= str(found.get("period_end")):
        return f"Monthly projection: {amount}; the month has ended"
    since = found.get("rate_from")
    span = f", based on usage from {since} to {found.get('as_of')}" if since else ""
    return f"Monthly projection: {amount}{span}"


def _rows(body: Row, member: str) -> list[Row]:
    found = body.get(member)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
