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
    """Lists the invoices of the organization, without their lines; operators see those of all
    organizations. A key restricted to a project sees none. Sorted by id, or by period with the
    latest first.
    """
    with database.read() as session:
        return invoice_page(session, caller, page, newest_first=newest_first)


@router.get("/{object_id}", operation_id="getInvoice", responses=READ_PROBLEMS)
def get_invoice(object_id: str, caller: Reader, database: DatabaseOf) -> InvoiceBody:
    """Returns an invoice with its lines, the topics of each line, and its reconciliation."""
    with database.read() as session:
        return invoice(session, caller, object_id)
