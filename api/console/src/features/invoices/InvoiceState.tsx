import { Label } from "@patternfly/react-core";
import type { Invoice } from "./invoice";

export function InvoiceState({ invoice }: { invoice: Invoice }) {
  return (
    <>
      <Label status="info">{invoice.state === "DRAFT" ? "Draft" : invoice.state}</Label>{" "}
      {invoice.blocked && <Label status="danger">Blocked</Label>}
    </>
  );
}
