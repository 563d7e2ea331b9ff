// The invoices: one a month, a draft until somebody issues it.

import "../figures.css";
import {
  Label,
  PageSection,
  Spinner,
  Title,
  Toolbar,
  ToolbarContent,
  ToolbarItem,
} from "@patternfly/react-core";
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { moment } from "../../api/bytes";
import { all } from "../../api/client";
import { money } from "../../api/decimal";
import { CopyAs, curl, python } from "../../widgets/CopyAs";
import { Problem } from "../../widgets/Problem";
import { NoReport } from "../reports/NoReport";
import { type Invoice, periodTitle } from "./invoice";

const RECIPE = {
  cli: "headrace invoice list",
  curl: curl("GET", "/v1/invoices"),
  python: python("print(b.admin.invoices())"),
};

export function Invoices() {
  const invoices = useQuery({
    queryKey: ["invoices"],
    queryFn: async () =>
      (await all<Invoice>("/v1/invoices")).sort((a, b) => (a.period < b.period ? 1 : -1)),
  });
  return (
    <PageSection>
      <Toolbar>
        <ToolbarContent alignItems="center">
          <ToolbarItem>
            <Title headingLevel="h1">Invoices</Title>
          </ToolbarItem>
          <ToolbarItem align={{ default: "alignEnd" }}>
            <CopyAs recipe={RECIPE} />
          </ToolbarItem>
        </ToolbarContent>
      </Toolbar>
      {invoices.isPending && <Spinner aria-label="Loading" />}
      {invoices.isError && <Problem error={invoices.error} />}
      {invoices.data?.length === 0 && <NoReport kind="usage" />}
      {invoices.data && invoices.data.length > 0 && <List invoices={invoices.data} />}
    </PageSection>
  );
}

export function InvoiceState({ invoice }: { invoice: Invoice }) {
  return (
    <>
      <Label status="info">{invoice.state === "DRAFT" ? "Draft" : invoice.state}</Label>{" "}
      {invoice.blocked && <Label status="danger">Blocked</Label>}
    </>
  );
}

function List({ invoices }: { invoices: Invoice[] }) {
  return (
    <Table aria-label="Invoices">
      <Thead>
        <Tr>
          <Th>Period</Th>
          <Th>State</Th>
          <Th>Organization</Th>
          <Th>Drawn of usage until (UTC)</Th>
          <Th className="hr-number">Total</Th>
        </Tr>
      </Thead>
      <Tbody>
        {invoices.map((invoice) => (
          <Tr key={invoice.id}>
            <Td dataLabel="Period">
              <Link to="/invoices/$invoiceId" params={{ invoiceId: invoice.id }}>
                {periodTitle(invoice.period)}
              </Link>
            </Td>
            <Td dataLabel="State">
              <InvoiceState invoice={invoice} />
            </Td>
            <Td dataLabel="Organization" modifier="breakWord">
              {invoice.organization ?? invoice.organization_id}
            </Td>
            <Td dataLabel="Drawn of usage until (UTC)">
              {invoice.as_of ? moment(invoice.as_of).slice(0, 16) : "–"}
            </Td>
            <Td dataLabel="Total" className="hr-number">
              {money(invoice.total, invoice.currency)}
            </Td>
          </Tr>
        ))}
      </Tbody>
    </Table>
  );
}
