"""The rules of invoices; the only writer of their tables.

An organization sees its own, the operator all; a key of one project sees none, for an invoice is of
the whole organization. Drafts come from the files of a usage run and are put in place with its
rows, in one transaction: what adds up otherwise than it says is not loaded.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Final

from pydantic import JsonValue as Json
from pydantic import ValidationError
from sqlalchemy import Select, and_, delete, or_, select
from sqlalchemy.orm import Session

from api.auth.guard import Owner
from api.auth.permissions import Caller
from api.auth.scope import of_organization, visible_to
from api.db.identifiers import new_id
from api.db.tables.invoices import Invoice, InvoiceLine
from api.db.tables.organizations import Organization
from api.db.tables.reports import CurrentRun, ReportRun
from api.http.errors import ResultRejectedError
from api.http.pagination import Page, PageRequest, Paging, last_shown, page_of, token_after
from api.http.resource import body_json
from api.invoices.schemas import (
    DrawnInvoice,
    InvoiceBody,
    InvoiceChecks,
    LineBody,
    ReconciliationBody,
)
from api.jobs.result import ReportResult
from api.jobs.rows import check_values, insert_all

FIRST: Final = 1
SEPARATOR: Final = "|"


def invoices_of(caller: Caller) -> Select[Invoice]:
    """What a caller may see."""
    return visible_to(select(Invoice), Invoice, caller)


def invoice_page(
    session: Session, caller: Caller, page: Paging, *, newest_first: bool
) -> Page[InvoiceBody]:
    """The invoices that a caller sees: by their ids, or by their periods, the latest first."""
    request = page.of(session, caller.org_id, "invoices", {"newest_first": newest_first})
    if newest_first:
        return _latest_first(session, caller, request)
    return page_of(
        session,
        invoices_of(caller),
        Invoice.id,
        request,
        lambda session, rows: invoice_bodies(session, caller, rows),
    )


def _latest_first(session: Session, caller: Caller, request: PageRequest) -> Page[InvoiceBody]:
    """A page goes on behind a period and an id: the invoice that stood there may be gone."""
    query = invoices_of(caller)
    after = last_shown(session, request)
    if after:
        period, _, identity = after.partition(SEPARATOR)
        start = datetime.fromisoformat(period)
        query = query.where(
            or_(
                Invoice.period_start < start,
                and_(Invoice.period_start == start, Invoice.id < identity),
            )
        )
    query = query.order_by(Invoice.period_start.desc(), Invoice.id.desc())
    rows = session.scalars(query.limit(request.limit() + 1)).all()
    shown = rows[: request.limit()]
    items = invoice_bodies(session, caller, shown)
    if len(rows) == len(shown):
        return Page(items=items)
    last = f"{shown[-1].period_start.isoformat()}{SEPARATOR}{shown[-1].id}"
    return Page(items=items, next_page_token=token_after(session, request, last))


def invoice_owner(session: Session, object_id: str) -> Owner | None:
    """Whose an invoice is: the organization's as a whole, and the operator's business."""
    row = session.get(Invoice, object_id)
    return Owner(row.org_id, project_id="", operated=True) if row else None


def invoice_bodies(session: Session, caller: Caller, rows: Sequence[Invoice]) -> list[InvoiceBody]:
    """Invoices without their lines, each with its organization's name."""
    ids = {row.org_id for row in rows}
    query = visible_to(select(Organization.id, Organization.name), Organization, caller)
    found = session.execute(query.where(Organization.id.in_(ids)))
    names = {row.id: row.name for row in found}
    return [InvoiceBody.of(row, names[row.org_id], own=row.org_id == caller.org_id) for row in rows]


def invoice(session: Session, caller: Caller, invoice_id: str) -> InvoiceBody:
    """One invoice with its lines."""
    row = session.get_one(Invoice, invoice_id)
    lines = session.scalars(
        select(InvoiceLine).where(InvoiceLine.invoice_id == row.id).order_by(InvoiceLine.line)
    )
    name = session.get_one(Organization, row.org_id).name
    return InvoiceBody.of(row, name, own=row.org_id == caller.org_id, lines=list(lines))


def reconciliation(session: Session, caller: Caller) -> ReconciliationBody:
    """The checks of every invoice that a caller may see; of the whole run for the operator."""
    rows = session.scalars(invoices_of(caller).order_by(Invoice.org_id, Invoice.period_start))
    shown = [
        InvoiceChecks(
            invoice_id=row.id,
            organization_id=row.org_id,
            period=f"{row.period_start:%Y-%m}",
            blocked=row.blocked,
            checks=row.checks,
        )
        for row in rows
    ]
    current = session.get(CurrentRun, "usage")
    if current is None:
        return ReconciliationBody(green=False, invoices=[])
    result = session.get_one(ReportRun, current.run_id).result or {}
    found = result.get("checks")
    checks = found if isinstance(found, list) and caller.operator else []
    red = any(isinstance(one, dict) and one.get("state") != "GREEN" for one in checks)
    return ReconciliationBody(
        run_id=current.run_id,
        input_sha256=str(result.get("input_sha256", "")),
        green=not red and not any(one.blocked for one in shown),
        checks=checks if caller.operator else None,
        invoices=shown,
    )


def load_invoices(
    session: Session, run: ReportRun, result: ReportResult, files: Mapping[str, str]
) -> None:
    """Puts the drafts of a run in place of those before; an invoice that was issued stays.

    :raises ResultRejectedError: a draft is not what the manifest says, or does not add up.
    """
    kept = set()
    for entry in result.invoices:
        drawn = _drawn(files.get(f"{entry.name}.json", ""), entry.name)
        if (drawn.organization_id, drawn.period, drawn.total, drawn.blocked) != (
            entry.organization_id,
            entry.period,
            entry.total,
            entry.blocked,
        ):
            raise ResultRejectedError(f"{entry.name}.json is not what the manifest says of it.")
        kept.add(_put(session, run, drawn))
    drafts = session.scalars(select(Invoice.id).where(Invoice.state == "DRAFT"))
    _remove(session, [one for one in drafts if one not in kept])


def _drawn(text: str, name: str) -> DrawnInvoice:
    try:
        drawn = DrawnInvoice.model_validate_json(text)
    except ValidationError as error:
        why = error.errors()[0]["msg"]
        raise ResultRejectedError(f"{name}.json is not an invoice: {why}.") from None
    if len({line.line for line in drawn.lines}) != len(drawn.lines):
        raise ResultRejectedError(f"{name}.json has two lines of one number.")
    total = sum((Decimal(line.amount) for line in drawn.lines), Decimal(0))
    red = any(check.state == "RED" for check in drawn.reconciliation)
    if total != Decimal(drawn.total) or red != drawn.blocked or drawn.name != name:
        raise ResultRejectedError(
            f"The lines of {name}.json do not add up to what it says.",
            lines=str(total),
            total=drawn.total,
        )
    return drawn


def _put(session: Session, run: ReportRun, drawn: DrawnInvoice) -> str:
    if session.get(Organization, drawn.organization_id) is None:
        raise ResultRejectedError(
            f"{drawn.name} names an unknown organization {drawn.organization_id}."
        )
    check_values(Invoice, dict(drawn))
    same = of_organization(select(Invoice), Invoice, drawn.organization_id).where(
        Invoice.period_start == drawn.period_start, Invoice.sequence == FIRST
    )
    row = session.scalars(same).first()
    if row is not None and row.state != "DRAFT":
        return row.id
    if row is None:
        row = Invoice(id=new_id("inv"), org_id=drawn.organization_id, sequence=FIRST)
        session.add(row)
    row.run_id, row.state, row.blocked = run.id, drawn.state, drawn.blocked
    row.period_start, row.period_end, row.as_of = (
        drawn.period_start,
        drawn.period_end,
        drawn.as_of,
    )
    row.currency, row.total, row.metered_exact = drawn.currency, drawn.total, drawn.metered_exact
    row.monthly_minimum = drawn.monthly_minimum
    row.amount_per_month, row.rate_from = drawn.amount_per_month or "", drawn.rate_from
    row.price_book_version, row.files = drawn.price_book_version, drawn.name
    row.checks = [body_json(check) for check in drawn.reconciliation]
    session.flush()
    session.execute(delete(InvoiceLine).where(InvoiceLine.invoice_id == row.id))
    insert_all(session, InvoiceLine, (_line(row.id, line) for line in drawn.lines))
    return row.id


def _line(invoice_id: str, line: LineBody) -> dict[str, object]:
    topics: list[Json] = [body_json(share) for share in line.topics]
    columns = {name: getattr(line, name) for name in LineBody.model_fields if name != "topics"}
    return {**columns, "invoice_id": invoice_id, "topics": topics}


def _remove(session: Session, ids: Sequence[str]) -> None:
    for identity in ids:
        session.execute(delete(InvoiceLine).where(InvoiceLine.invoice_id == identity))
        session.execute(delete(Invoice).where(Invoice.id == identity))
