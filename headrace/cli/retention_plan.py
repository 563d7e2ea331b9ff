"""The records that a shorter retention would delete, in words, from the plan of a dry run.

Refuses to count by itself, and to show an unknown number as 0.
"""

from __future__ import annotations

from collections.abc import Mapping

from headrace.cli.messages import count_of
from headrace.cli.output import Row, path

LIMITS = frozenset({"retention_ms", "retention_bytes"})


def going(planned: Row) -> list[str]:
    """The records that would be deleted, and warnings; empty if there are none."""
    loss = path("plan", "data_loss")(planned)
    if not isinstance(loss, Mapping) or str(loss.get("records")) == "0":
        return []
    warnings = path("plan", "warnings")(planned)
    said = [str(each) for each in warnings] if isinstance(warnings, list) else []
    records = str(loss.get("records"))
    if not records.isdigit():
        return ["an unknown number of records", *said]
    places = int(str(loss.get("partitions") or 0))
    text = f"{count_of(int(records), 'record')} in {count_of(places, 'partition')}"
    text += f", about {count_of(int(str(loss.get('bytes_estimate') or 0)), 'byte')}"
    if loss.get("oldest_at"):
        text += f", the oldest from {loss['oldest_at']}"
    return [text, *said]
