// The invoices: one a month and organization, each a draft that every usage report draws anew.

import "../../ui/figures.css";
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
import type { components } from "../../../build/schema";
import { usePages } from "../../hooks/usePages";
import { all, call } from "../../lib/client";
import { money } from "../../lib/decimal";
import { moment } from "../../lib/format";
import { curl, python } from "../../lib/recipe";
import { CopyAs } from "../../ui/CopyAs";
import { More } from "../../ui/More";
import { NoReport } from "../../ui/NoReport";
import { Problem } from "../../ui/Problem";
import { checksOf, type Invoice, periodTitle } from "./invoice";
import { Reconciliation } from "./Reconciliation";

type Body = components["schemas"]["ReconciliationBody"];
type Named = { id: string; name: string };

const PATH = "/v1/invoices?newest_first=true&page_size=50";

const RECIPE = {
  cli: "headrace invoice list",
  curl: curl("GET", PATH),
  python: python("print(b.admin.invoices())"),
};

export function Invoices() {
  const invoices = usePages<Invoice>(["invoices"], PATH);
  const proven = useQuery({
    queryKey: ["reconciliation"],
    queryFn: () => call<Body>("GET", "/v1/usage/reconciliation"),
  });
  const checks = checksOf(proven.data?.checks);
  return (
    <PageSection>
      <Toolbar>
        <ToolbarContent alignItems="center">
          <ToolbarItem>
            <Title headingLevel="h1">Invoices</Title>
          </ToolbarItem>
          {proven.data?.run_id && (
            <ToolbarItem alignSelf="center">
              <Proven body={proven.data} />
            </ToolbarItem>
          )}
          <ToolbarItem align={{ default: "alignEnd" }}>
            <CopyAs recipe={RECIPE} />
          </ToolbarItem>
        </ToolbarContent>
      </Toolbar>
      {invoices.isPending && <Spinner aria-label="Loading" />}
      {invoices.isError && <Problem error={invoices.error} />}
      {proven.isError && <Problem error={proven.error} />}
      {invoices.data && invoices.items.length === 0 && <NoReport kind="usage" />}
      {invoices.items.length > 0 && <List invoices={invoices.items} />}
      <More pages={invoices}>Earlier invoices</More>
      {checks.length > 0 && (
        <div className="hr-panel">
          <Reconciliation checks={checks} title="Reconciliation of the whole run" />
        </div>
      )}
    </PageSection>
  );
}

/** What the last run proved of every invoice that is shown. */
function Proven({ body }: { body: Body }) {
  const blocked = body.invoices.filter((each) => each.blocked).length;
  if (body.green) return <Label status="success">All reconciled</Label>;
  return (
    <Label status="danger">
      {blocked > 0 ? `${blocked} of ${body.invoices.length} blocked` : "The run is not reconciled"}
    </Label>
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
  const names = useQuery({
    queryKey: ["organizations"],
    queryFn: async () =>
      new Map((await all<Named>("/v1/orgs")).map((each) => [each.id, each.name] as const)),
  });
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
              {names.data?.get(invoice.organization_id) ?? invoice.organization_id}
            </Td>
            <Td dataLabel="Drawn of usage until (UTC)">{moment(invoice.as_of).slice(0, 16)}</Td>
            <Td dataLabel="Total" className="hr-number">
              {money(invoice.total, invoice.currency)}
            </Td>
          </Tr>
        ))}
      </Tbody>
    </Table>
  );
}
