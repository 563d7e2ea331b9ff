"""Sums of usage rows: exact, in Python's integers and decimals, over the run that is shown."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Context, Decimal
from typing import Final

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from api.auth.permissions import Caller
from api.auth.scope import visible_to
from api.db.tables.reports import CurrentRun, ReportRun
from api.db.tables.usage import Price, UsageRow
from api.http.errors import InvalidRequestError, Violation
from api.usage.schemas import GroupBy, MeterTotal, Money, UsageBody, UsageItem

# Sums of 64-digit text stay exact far below this precision.
EXACT: Final = Context(prec=120)


@dataclass(frozen=True, slots=True, order=True)
class Group:
    """What a sum is of; what a grouping does not tell apart is empty."""

    name: str
    topic_id: str = ""
    topic: str = ""


GROUPS: Final[dict[str, Callable[[UsageRow], Group]]] = {
    "hour": lambda row: Group(_hour(row.window_start)),
    "day": lambda row: Group(_day(row.window_start)),
    "topic": lambda row: Group(_topic_name(row), row.topic_id),
    "principal": lambda row: Group(row.principal),
    "organization": lambda row: Group(row.organization),
    "hour_topic": lambda row: Group(_hour(row.window_start), row.topic_id, _topic_name(row)),
    "day_topic": lambda row: Group(_day(row.window_start), row.topic_id, _topic_name(row)),
}


@dataclass(frozen=True, slots=True)
class UsageQuery:
    """Which rows: those whose window begins in [since, until), of a topic and a meter if named."""

    group_by: GroupBy
    since: datetime | None
    until: datetime | None
    topic_id: str
    meter: str


@dataclass(slots=True)
class _Sum:
    quantity: Decimal = field(default_factory=Decimal)
    amount: Decimal = field(default_factory=Decimal)

    def add(self, row: UsageRow) -> None:
        self.quantity = EXACT.add(self.quantity, Decimal(row.quantity))
        self.amount = EXACT.add(self.amount, Decimal(row.amount))


def usage(session: Session, caller: Caller, query: UsageQuery) -> UsageBody:
    """The sums a caller may see: its organization's, its project's, or for the operator all.

    :raises InvalidRequestError: no such meter; the detail names those there are.
    """
    current = session.get(CurrentRun, "usage")
    _check_meter(session, query.meter, current.run_id if current is not None else None)
    if current is None:
        return UsageBody(group_by=query.group_by, items=[], totals=[], cost=[])
    run = session.get_one(ReportRun, current.run_id)
    groups: dict[tuple[Group, str, str, str], _Sum] = defaultdict(_Sum)
    totals: dict[tuple[str, str, str], _Sum] = defaultdict(_Sum)
    costs: dict[str, _Sum] = defaultdict(_Sum)
    group_of = GROUPS[query.group_by]
    for row in session.scalars(_rows(caller, query, run.id)):
        groups[group_of(row), row.meter, row.unit, row.currency].add(row)
        totals[row.meter, row.unit, row.currency].add(row)
        costs[row.currency].add(row)
    return UsageBody(
        run_id=run.id,
        input_sha256=str(run.result["input_sha256"]) if run.result else None,
        computed_at=run.finished_at,
        group_by=query.group_by,
        items=[
            UsageItem(
                group=group.name,
                topic_id=group.topic_id or None,
                topic=group.topic or None,
                meter=meter,
                unit=unit,
                quantity=_plain(total.quantity),
                cost=Money(amount=_plain(total.amount), currency=currency),
            )
            for (group, meter, unit, currency), total in sorted(
                groups.items(), key=lambda found: found[0]
            )
        ],
        totals=[
            MeterTotal(
                meter=meter,
                unit=unit,
                quantity=_plain(total.quantity),
                cost=Money(amount=_plain(total.amount), currency=currency),
            )
            for (meter, unit, currency), total in sorted(totals.items())
        ],
        cost=[
            Money(amount=_plain(total.amount), currency=currency)
            for currency, total in sorted(costs.items())
        ],
    )


def _rows(caller: Caller, query: UsageQuery, run_id: str) -> Select[UsageRow]:
    rows = visible_to(select(UsageRow), UsageRow, caller)
    rows = rows.where(UsageRow.run_id == run_id).execution_options(yield_per=1000)
    if query.since is not None:
        rows = rows.where(UsageRow.window_start >= query.since)
    if query.until is not None:
        rows = rows.where(UsageRow.window_start < query.until)
    if query.topic_id:
        rows = rows.where(UsageRow.topic_id == query.topic_id)
    if query.meter:
        rows = rows.where(UsageRow.meter == query.meter)
    return rows


def _check_meter(session: Session, meter: str, run_id: str | None) -> None:
    """A meter is known by its price or by a row; any other name is a slip, not an empty answer."""
    if not meter:
        return
    known = set(session.scalars(select(Price.meter).distinct()))
    known.update(session.scalars(select(UsageRow.meter).filter_by(run_id=run_id).distinct()))
    if meter not in known:
        names = ", ".join(sorted(known))
        fault = f'"{meter}" is not one of {names}'
        raise InvalidRequestError(
            f"meter: {fault}.",
            violations=[Violation("?meter", "METER_UNKNOWN", fault, actual=meter)],
        )


def _topic_name(row: UsageRow) -> str:
    return row.topic if "/" in row.topic else f"{row.stream}/{row.topic}"


def _day(moment: datetime) -> str:
    return moment.astimezone(UTC).date().isoformat()


def _hour(moment: datetime) -> str:
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="hours") + ":00:00Z"


def _plain(value: Decimal) -> str:
    return format(value, "f")
