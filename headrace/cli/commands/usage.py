"""`headrace usage`: usage and cost, from the latest usage report."""

from __future__ import annotations

import click

from headrace.cli.messages import in_words_typed
from headrace.cli.options import Verb, client, printer
from headrace.cli.output import Column, note, path

_TYPED = {"?meter": "--meter", "?from": "--since", "?to": "--until"}


@click.command(cls=Verb)
@click.option(
    "--by",
    type=click.Choice(["day", "hour", "topic", "principal", "organization"]),
    default="day",
    show_default=True,
    help="Group rows by this dimension.",
)
@click.option(
    "--since", default="", metavar="TIME", help="Start of the time range, inclusive (RFC 3339)."
)
@click.option(
    "--until", default="", metavar="TIME", help="End of the time range, exclusive (RFC 3339)."
)
@click.option("--topic", default="", help="Only this topic.")
@click.option("--meter", default="", help="Only this meter, for example ingress_bytes.")
def usage(by: str, since: str, until: str, topic: str, meter: str) -> None:
    """Show usage and cost from the latest usage report."""
    with client() as c, in_words_typed(_TYPED):
        found = c.admin.usage(by=by, since=since, until=until, topic=topic, meter=meter)
    items = found.get("items")
    rows = [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
    columns = (
        Column(by, path("group")),
        Column("meter", path("meter")),
        Column("quantity", path("quantity"), right=True),
        Column("unit", path("unit")),
        Column("cost", path("cost", "amount"), right=True),
        Column("currency", path("cost", "currency")),
        Column("topic_id", path("topic_id"), wide=True),
    )
    printer().listing(found, rows, columns, name="group")
    if not found.get("run_id"):
        note("No report has run yet. Run one with: headrace report run usage --wait")
        return
    costs = found.get("cost")
    for cost in costs if isinstance(costs, list) else []:
        if isinstance(cost, dict):
            note(f"Total: {cost.get('amount')} {cost.get('currency')}")
    note(f"Computed at {found.get('computed_at')}. Later usage appears in the next report.")
    note(
        "The cost of each row is rounded to 9 decimal places. An invoice rounds the cost of each "
        "meter once, so its total can differ slightly."
    )
