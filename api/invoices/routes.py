"""HTTP for invoices: read only; a usage report draws them."""

from typing import Annotated

from fastapi import APIRouter, Depends

from api.auth.guard import Guard
from api.auth.permissions import Caller
from api.db.tables.invoices import Invoice
from api.http.pagination import Page, PageRequest, page_of
from api.http.routing import READ_PROBLEMS, DatabaseOf, NewestFirst, PageSize, PageToken, Route
from api.invoices.schemas import InvoiceBody
from api.invoices.service import (
    invoice,
    invoice_bodies,
    invoice_owner,
    invoices_of,
    latest_first,
)

router = APIRouter(prefix="/v1/invoices", route_class=Route, tags=["invoices"])

Lister = Annotated[Caller, Depends(Guard("invoices:read"))]
Reader = Annotated[Caller, Depends(Guard("invoices:read", invoice_owner))]


@router.get("", operation_id="listInvoices", responses=READ_PROBLEMS)
def list_invoices(
    caller: Lister,
    database: DatabaseOf,
    newest_first: NewestFirst = False,
    page_size: PageSize = 0,
    page_token: PageToken = "",
) -> Page[InvoiceBody]:
    """The invoices of the caller's organization, of all for the operator; without their lines. A
    key of one project sees none. In order of their ids, or of their periods, the latest first."""
    with database.read() as session:
        request = PageRequest(
            caller.org_id,
            (("list", "invoices"), ("newest_first", str(newest_first))),
            page_size,
            page_token,
            database.now(session),
        )
        if newest_first:
            items, token = latest_first(session, caller, request)
            return Page(items=items, next_page_token=token)
        items, token = page_of(
            session,
            invoices_of(caller),
            Invoice.id,
            request,
            render=lambda rows: invoice_bodies(session, caller, rows),
            key_of=lambda row: row.id,
        )
    return Page(items=items, next_page_token=token)


@router.get("/{object_id}", operation_id="getInvoice", responses=READ_PROBLEMS)
def get_invoice(object_id: str, caller: Reader, database: DatabaseOf) -> InvoiceBody:
    """One invoice with its lines, each with its topics, and its reconciliation."""
    with database.read() as session:
        return invoice(session, caller, object_id)
