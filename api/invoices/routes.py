"""HTTP for invoices: read only; a usage report draws them."""

from typing import Annotated

from fastapi import APIRouter, Depends

from api.auth.guard import Guard
from api.auth.permissions import Caller
from api.http.pagination import Page
from api.http.routing import READ_PROBLEMS, DatabaseOf, NewestFirst, PageOf, Route
from api.invoices.schemas import InvoiceBody
from api.invoices.service import invoice, invoice_owner, invoice_page

router = APIRouter(prefix="/v1/invoices", route_class=Route, tags=["invoices"])

Lister = Annotated[Caller, Depends(Guard("invoices:read"))]
Reader = Annotated[Caller, Depends(Guard("invoices:read", invoice_owner))]


@router.get("", operation_id="listInvoices", responses=READ_PROBLEMS)
def list_invoices(
    caller: Lister, database: DatabaseOf, page: PageOf, newest_first: NewestFirst = False
) -> Page[InvoiceBody]:
    """The invoices of the caller's organization, of all for the operator; without their lines. A
    key of one project sees none. In order of their ids, or of their periods, the latest first."""
    with database.read() as session:
        return invoice_page(session, caller, page, newest_first=newest_first)


@router.get("/{object_id}", operation_id="getInvoice", responses=READ_PROBLEMS)
def get_invoice(object_id: str, caller: Reader, database: DatabaseOf) -> InvoiceBody:
    """One invoice with its lines, each with its topics, and its reconciliation."""
    with database.read() as session:
        return invoice(session, caller, object_id)
