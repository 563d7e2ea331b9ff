// The invoices: one a month and organization, each a draft that every usage report replaces.

import { Label } from "@patternfly/react-core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { components } from "../../../build/schema";
import { usePages } from "../../hooks/usePages";
import { all, call } from "../../lib/client";
import { money } from "../../lib/decimal";
import { moment } from "../../lib/format";
import { curl, python } from "../../lib/recipe";
import type { Column } from "../../ui/DataTable";
import { List } from "../../ui/List";
import { ListPage } from "../../ui/ListPage";
import { NoReport } from "../../ui/NoReport";
import { Problem } from "../../ui/Problem";
import { InvoiceState } from "./InvoiceState";
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
  const names = useQuery({
    queryKey: ["organizations"],
    queryFn: async () =>
      new Map((await all<Named>("/v1/orgs")).map((each) => [each.id, each.name] as const)),
  });
  const checks = checksOf(proven.data?.checks);
  return (
    <ListPage
      title="Invoices"
      state={proven.data?.run_id && <Proven body={proven.data} />}
      recipe={RECIPE}
    >
      {proven.isError && <Problem error={proven.error} />}
      <List
        label="Invoices"
        noun="invoice"
        query={invoices}
        items={invoices.items}
        columns={columnsOf(names.data ?? new Map())}
        keyOf={(invoice) => invoice.id}
        pages={invoices}
        empty={<NoReport kind="usage" />}
      />
      {checks.length > 0 && (
        <div className="hr-panel">
          <Reconciliation checks={checks} title="Reconciliation of the run" />
        </div>
      )}
    </ListPage>
  );
}

/** Whether the last run reconciled every invoice that is shown. */
function Proven({ body }: { body: Body }) {
  const blocked = body.invoices.filter((each) => each.blocked).length;
  if (body.green) return <Label status="success">All reconciled</Label>;
  return (
    <Label status="danger">
      {blocked > 0 ? `${blocked} of ${body.invoices.length} blocked` : "Not reconciled"}
    </Label>
  );
}

/** `names`: of the organizations, by id. */
function columnsOf(names: Map<string, string>): Column<Invoice>[] {
  return [
    {
      title: "Period",
      cell: (invoice) => (
        <Link to="/invoices/$invoiceId" params={{ invoiceId: invoice.id }}>
          {periodTitle(invoice.period)}
        </Link>
      ),
    },
    { title: "State", cell: (invoice) => <InvoiceState invoice={invoice} /> },
    {
      title: "Organization",
      wrap: "anywhere",
      cell: (invoice) => names.get(invoice.organization_id) ?? invoice.organization_id,
    },
    {
      title: "As of (UTC)",
      cell: (invoice) => moment(invoice.as_of).slice(0, 16),
    },
    {
      title: "Total",
      isNumber: true,
      cell: (invoice) => money(invoice.total, invoice.currency),
    },
  ];
}
