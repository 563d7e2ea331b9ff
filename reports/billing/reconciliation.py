"""The six questions that a bill must answer before it may be issued; one red blocks the invoice.

    counters           every counter moved by its deltas, and no record of one is missing
    quantities         raw = hourly = daily = rated, for every meter, to the byte
    log                ingress by the log itself is ingress by the meter, to 0.01 %
    partition_seconds  the hours add up to the lifecycle of the topics, to the second
    unattributed       all usage has an owner, and none is dated ahead of the run
    lines              the lines add up to the invoice, the shares to their lines

Owns the questions and their tolerance. Each is answered for one invoice, from its organization's
figures alone, and for the whole run. Pure: figures in, answers out; every sum is made from another
source than the figure that it is compared with.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from pyspark.sql import Row

from reports.billing.accounts import Account, Accounts, Period
from reports.billing.counters import LIFE_STATES_BAD
from reports.billing.invoice import Draft
from reports.billing.partition_hours import METER as PARTITION_SECONDS
from reports.billing.partition_hours import seconds_within
from reports.input.export import Export
from reports.input.prices import rounded

LOG_TOLERANCE = 10_000
AHEAD = timedelta(minutes=5)
NAMES_MAX = 20
HALF_A_BILLIONTH = Decimal("0.0000000005")
FOREVER = Period(datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC))


# What each check asserts: shown on pages, in the console and in JSON.
TITLES: Mapping[str, str] = {
    "counters": "Counters are complete",
    "quantities": "Raw, hourly, daily and rated sums match",
    "log": "Billed bytes match the log",
    "partition_seconds": "Partition time matches topic lifetimes",
    "unattributed": "All usage has an owner",
    "lines": "Line items add up to the invoice",
}


@dataclass(frozen=True, slots=True)
class Check:
    """An answer: green or not, the figures that were compared, and a sentence."""

    name: str
    ok: bool
    figures: Mapping[str, str]
    detail: str

    @property
    def title(self) -> str:
        """The question in words."""
        return TITLES[self.name]

    def document(self) -> dict[str, object]:
        """As JSON holds it."""
        state = "GREEN" if self.ok else "RED"
        return {
            "name": self.name,
            "title": self.title,
            "state": state,
            "figures": dict(self.figures),
            "detail": self.detail,
        }


@dataclass(frozen=True, slots=True)
class Measured:
    """What Spark summed beside the rows. Rows of counters.lives, counters.series, trail.raw_of_*,
    trail.ingress, usage.reconcile and usage.gaps."""

    lives: Sequence[Row]
    series: Sequence[Row]
    raw: Sequence[Row]
    ingress: Sequence[Row]
    partitions: Sequence[Row]
    findings: Sequence[Row]

    def of(self, organization_id: str) -> "Measured":
        """What concerns one organization. Lives of shards are everybody's."""

        def mine(rows: Sequence[Row]) -> list[Row]:
            return [row for row in rows if row["organization_id"] == organization_id]

        partitions = mine(self.partitions)
        places = {_place(row) for row in partitions}
        return Measured(
            lives=self.lives,
            series=mine(self.series),
            raw=mine(self.raw),
            ingress=mine(self.ingress),
            partitions=partitions,
            findings=[row for row in self.findings if _place(row) in places],
        )


def checks_of_draft(draft: Draft, measured: Measured, export: Export) -> list[Check]:
    """The answers for one invoice."""
    mine = measured.of(draft.organization.id)
    named = {draft.organization.name: draft.organization.id}
    accounts = Accounts()
    accounts.by[draft.organization.name, draft.period] = draft.account
    return [
        _counters(mine),
        _quantities(mine, [draft.account], [draft], draft.period, export),
        _log(mine),
        _partition_seconds(accounts, draft.period, export, draft.organization.id),
        _unattributed(accounts, named, export),
        _lines([draft]),
    ]


def checks_of_run(
    accounts: Accounts, drafts: Sequence[Draft], measured: Measured, export: Export
) -> list[Check]:
    """The answers for everything that was billed, for the operator."""
    named = {one.name: identity for identity, one in export.organizations.items()}
    return [
        _counters(measured),
        _quantities(measured, list(accounts.by.values()), drafts, FOREVER, export),
        _log(measured),
        _partition_seconds(accounts, FOREVER, export, ""),
        _unattributed(accounts, named, export),
        _lines(drafts),
    ]


def _counters(measured: Measured) -> Check:
    """(a) A life that ended without its last record is no fault: what it lost was never billed."""
    differing = sum(row["differing"] for row in measured.series)
    conflicts = sum(row["conflicts"] for row in (*measured.partitions, *measured.lives))
    bad = [row for row in measured.lives if row["state"] in LIFE_STATES_BAD]
    lost = [row for row in measured.lives if row["state"] == "POSSIBLY_LOST"]
    missing = len(measured.findings) + sum(max(0, row["missing"]) for row in measured.lives)
    detail = f"No records are missing; shard runs that were metered: {len(measured.lives)}."
    if bad or differing or measured.findings or conflicts:
        detail = "Meter records are missing or conflicting: " + _some(
            [f"{_life(row)} {row['state']}" for row in bad]
            + [f"topic {row['topic']} partition {row['partition']}" for row in measured.findings]
        )
    elif lost:
        detail += " Usage after the last record of a shard run was lost and not billed: " + _some(
            [f"{_life(row)} after {_moment(row['last_us'])}" for row in lost]
        )
    return Check(
        "counters",
        not (bad or differing or measured.findings or conflicts),
        _figures(
            series=sum(row["series"] for row in measured.series),
            series_differing=differing,
            deltas=sum(row["delta"] for row in measured.series),
            moved=sum(row["moved"] for row in measured.series),
            records_missing=missing,
            conflicts=conflicts,
            lives_possibly_lost=len(lost),
        ),
        detail,
    )


def _quantities(
    measured: Measured,
    accounts: Sequence[Account],
    drafts: Sequence[Draft],
    period: Period,
    export: Export,
) -> Check:
    """(b) Four sums of one thing. An informational meter has no line; its rows are its rating."""
    raw: dict[str, int] = defaultdict(int)
    for row in measured.raw:
        if period.start <= _day(row["at_us"]) < period.end:
            raw[row["meter"]] += row["quantity"]
    rated: dict[str, int] = defaultdict(int)
    for line in (line for draft in drafts for line in draft.lines if line.price is not None):
        rated[line.sku] += line.quantity
    figures: dict[str, int] = {}
    wrong = []
    for meter in sorted({meter for account in accounts for meter in account.quantities} | set(raw)):
        hourly = sum(account.quantities.get(meter, 0) for account in accounts)
        daily = sum(sum(account.days(meter).values()) for account in accounts)
        free = meter not in rated and _free(export, accounts, meter)
        said = {
            "raw": hourly if meter == PARTITION_SECONDS else raw[meter],
            "hourly": hourly,
            "daily": daily,
            "rated": hourly if free else rated[meter],
        }
        figures |= {f"{meter}_{name}": quantity for name, quantity in said.items()}
        if len(set(said.values())) != 1:
            wrong.append(meter)
    detail = "Raw, hourly, daily and rated quantities match."
    if wrong:
        detail = f"These sums do not match: {_some(wrong)}."
    return Check("quantities", not wrong, _figures(**figures), detail)


def _log(measured: Measured) -> Check:
    """(c) Only partitions whose log is still there can be asked."""
    asked = [row for row in measured.partitions if row["difference"] is not None]
    billed = sum(row["bytes_billed"] for row in asked)
    difference = sum(abs(row["difference"]) for row in asked)
    ok = difference * LOG_TOLERANCE <= billed
    return Check(
        "log",
        ok,
        _figures(
            bytes_by_log=sum(row["bytes_billed"] + row["difference"] for row in asked),
            bytes_by_meter=billed,
            difference=difference,
            bytes_unverified=sum(row["bytes_billed"] for row in measured.partitions) - billed,
        ),
        "The log and the meter match."
        if not difference
        else f"The log and the meter differ by {difference} bytes; "
        f"up to {billed // LOG_TOLERANCE} are allowed.",
    )


def _partition_seconds(
    accounts: Accounts, period: Period, export: Export, organization_id: str
) -> Check:
    """(d) The spans of the topics, measured a second time without hours."""
    spans = [
        span
        for span in export.lifecycle
        if organization_id in ("", span.organization_id)
        and not export.topics.get(span.topic_id, ("", span.topic_id))[1].startswith("_")
    ]
    expected = 0
    if export.as_of is not None:
        expected = seconds_within(spans, export.as_of, period.start, period.end)
    found = sum(account.quantities.get(PARTITION_SECONDS, 0) for account in accounts.by.values())
    detail = "Metered hours match the lifetimes of the topics."
    if found != expected:
        detail = f"Metered hours differ from topic lifetimes by {found - expected} s."
    figures = _figures(by_lifecycle=expected, by_hours=found)
    return Check("partition_seconds", found == expected, figures, detail)


def _unattributed(accounts: Accounts, named: Mapping[str, str], export: Export) -> Check:
    """(e) Rows without owner, rows dated ahead, and (listed only) rows of topics without a name."""
    limit = None if export.as_of is None else export.as_of + AHEAD
    unowned: dict[str, int] = defaultdict(int)
    ahead: dict[str, int] = defaultdict(int)
    nameless: dict[str, int] = defaultdict(int)
    for (organization, _), account in accounts.by.items():
        for (hour, meter, topic), quantity in account.hours.items():
            if meter != "ingress_bytes":
                quantity = 0  # listed by name; bytes are what the figures count
            if organization not in named:
                unowned[organization] += quantity
            if limit is not None and hour > limit:
                ahead[f"{topic.label} at {hour:%Y-%m-%dT%H:%MZ}"] += quantity
            if topic.topic_id not in export.topics:
                nameless[topic.topic_id] += quantity
    listed = [f"{name} (no owner)" for name in unowned]
    listed += [f"{name} (in the future)" for name in ahead]
    return Check(
        "unattributed",
        not (unowned or ahead),
        _figures(
            unattributed=len(unowned),
            unattributed_bytes=sum(unowned.values()),
            quarantined=len(ahead),
            quarantined_bytes=sum(ahead.values()),
            topics_without_a_name=len(nameless),
        ),
        f"Usage on no invoice: {_some(listed)}." if listed else "All usage has an owner.",
    )


def _lines(drafts: Sequence[Draft]) -> Check:
    """(f) From the lines as they are shown."""
    wrong = []
    for draft in drafts:
        shown = [line.row()["amount"] for line in draft.lines]
        if sum((one for one in shown if isinstance(one, Decimal)), Decimal(0)) != draft.total:
            wrong.append(f"{draft.stem}: the total")
        for line in draft.lines:
            shares = sum((share.amount for share in line.shares), Decimal(0))
            exact = sum(
                (one.amount_exact for one in draft.lines if one.sku == line.sku), Decimal(0)
            )
            rows = draft.account.amounts.get(line.sku, exact)
            slack = HALF_A_BILLIONTH * (draft.account.rows + len(draft.lines))
            if line.amount != rounded(line.amount_exact):
                wrong.append(f"{draft.stem}: line {line.number} is not rounded")
            if line.price is not None and shares != line.amount:
                wrong.append(f"{draft.stem}: the shares of line {line.number}")
            if abs(rows - exact) > slack:
                wrong.append(f"{draft.stem}: the rows of line {line.number}")
    lines = [line for draft in drafts for line in draft.lines]
    return Check(
        "lines",
        not wrong,
        {
            "invoices": str(len(drafts)),
            "lines": str(len(lines)),
            "lines_amount": f"{sum((line.amount for line in lines), Decimal('0.00')):.2f}",
            "invoices_total": f"{sum((draft.total for draft in drafts), Decimal('0.00')):.2f}",
        },
        f"These do not add up: {_some(wrong)}." if wrong else "All line items and shares add up.",
    )


def _free(export: Export, accounts: Sequence[Account], meter: str) -> bool:
    """Whether a meter costs nothing in any hour in which it was used."""
    used = {hour for account in accounts for hour, name, _ in account.hours if name == meter}
    return not any(export.book_at(hour).price(meter).unit_price for hour in used)


def _place(row: Row) -> tuple[int, int, int]:
    return row["topic"], row["created_revision"], row["partition"]


def _life(row: Row) -> str:
    return f"{row['node_id']} life {row['incarnation']} shard {row['shard']}"


def _day(day_us: int) -> datetime:
    return datetime.combine(date(1970, 1, 1), datetime.min.time(), UTC) + timedelta(
        microseconds=day_us
    )


def _moment(moment_us: int) -> str:
    return f"{_day(moment_us):%Y-%m-%dT%H:%M:%SZ}"


def _figures(**figures: int) -> dict[str, str]:
    return {name: str(value) for name, value in figures.items()}


def _some(names: Iterable[str]) -> str:
    listed = list(names)
    more = len(listed) - NAMES_MAX
    return ", ".join(listed[:NAMES_MAX]) + (f" and {more} more" if more > 0 else "")
