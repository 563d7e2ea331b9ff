// One invoice: what it comes to and why, line by line, and whether its figures agree.

import "../../ui/figures.css";
import {
  Breadcrumb,
  BreadcrumbItem,
  Button,
  Card,
  CardBody,
  CardTitle,
  PageSection,
  Spinner,
  Title,
  Toolbar,
  ToolbarContent,
  ToolbarItem,
} from "@patternfly/react-core";
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { Fragment, useState } from "react";
import { call } from "../../lib/client";
import { exactly, grouped, money, trimmed } from "../../lib/decimal";
import { moment } from "../../lib/format";
import { curl, python } from "../../lib/recipe";
import { fileAddress } from "../../lib/reports";
import { CopyAs } from "../../ui/CopyAs";
import { Missing } from "../../ui/Missing";
import { Problem } from "../../ui/Problem";
import { RunLink } from "../../ui/RunLink";
import { InvoiceState } from "./Invoices";
import {
  checksOf,
  fileOf,
  type Invoice as InvoiceBody,
  type InvoiceFile,
  type Line,
  periodTitle,
  quantityOf,
} from "./invoice";
import { Reconciliation, ReconciliationBadge } from "./Reconciliation";
import { LineTrail } from "./Trail";

export function Invoice() {
  const { invoiceId } = useParams({ from: "/invoices/$invoiceId" });
  const invoice = useQuery({
    queryKey: ["invoices", invoiceId],
    queryFn: () => call<InvoiceBody>("GET", `/v1/invoices/${encodeURIComponent(invoiceId)}`),
  });
  const body = invoice.data;
  // The way down to hours and offsets is evidence: it is read from the file that was published.
  const file = useQuery({
    queryKey: ["invoices", invoiceId, "file", body?.run_id],
    queryFn: () =>
      call<InvoiceFile>("GET", body ? fileAddress(body.run_id, fileOf(body, "json")) : ""),
    enabled: body !== undefined,
  });
  if (invoice.isPending) {
    return (
      <PageSection>
        <Spinner aria-label="Loading" />
      </PageSection>
    );
  }
  if (!body) {
    return <Missing what="invoice" error={invoice.error} to="/invoices" all="All invoices" />;
  }
  return (
    <PageSection>
      <Breadcrumb aria-label="Where this is">
        <BreadcrumbItem render={() => <Link to="/invoices">Invoices</Link>} />
        <BreadcrumbItem isActive>{periodTitle(body.period)}</BreadcrumbItem>
      </Breadcrumb>
      <Toolbar>
        <ToolbarContent alignItems="center">
          <ToolbarItem>
            <Title headingLevel="h1">{periodTitle(body.period)}</Title>
          </ToolbarItem>
          <ToolbarItem alignSelf="center">
            <InvoiceState invoice={body} />{" "}
            <ReconciliationBadge checks={checksOf(body.reconciliation)} />
          </ToolbarItem>
          <ToolbarItem align={{ default: "alignEnd" }} className="hr-acts">
            <Files invoice={body} />
            <CopyAs recipe={recipeOf(body)} />
          </ToolbarItem>
        </ToolbarContent>
      </Toolbar>
      <div className="hr-stack">
        <Figures invoice={body} />
        <Card component="section" aria-label="Lines">
          <CardTitle component="h2">Lines</CardTitle>
          <CardBody>
            <Lines invoice={body} file={file.data} />
          </CardBody>
        </Card>
        {file.isError && <Problem error={file.error} />}
        <Reconciliation checks={checksOf(body.reconciliation)} />
        <p className="hr-muted">
          Drawn by <RunLink id={body.run_id} />. Every usage report draws it anew; it stays a draft,
          for this release issues none.
        </p>
      </div>
    </PageSection>
  );
}

const KINDS = [
  ["csv", "CSV"],
  ["json", "JSON"],
  ["parquet", "Parquet"],
] as const;

function Files({ invoice }: { invoice: InvoiceBody }) {
  const { run_id: run } = invoice;
  return (
    <>
      <Button
        component="a"
        variant="secondary"
        href={fileAddress(run, fileOf(invoice, "html"))}
        target="_blank"
        rel="noopener noreferrer"
      >
        Open the page
      </Button>
      {KINDS.map(([kind, title]) => (
        <Button
          key={kind}
          component="a"
          variant="link"
          href={fileAddress(run, fileOf(invoice, kind))}
          download={fileOf(invoice, kind)}
          aria-label={`Download ${title}`}
        >
          {title}
        </Button>
      ))}
    </>
  );
}

/** From what span the rate is taken. */
function rateSpan(invoice: InvoiceBody): string {
  if (!invoice.amount_per_month) return "less than one full hour is known";
  if (invoice.as_of >= invoice.period_end) return "the month is over";
  return invoice.rate_from
    ? `by what is known from ${moment(invoice.rate_from).slice(0, 16)} UTC on`
    : "";
}

function Figures({ invoice }: { invoice: InvoiceBody }) {
  return (
    <dl className="hr-figures">
      <div className="hr-figure">
        <dt>Total</dt>
        <dd>{money(invoice.total, invoice.currency)}</dd>
      </div>
      <div className="hr-figure">
        <dt>Metered so far</dt>
        <dd>
          {money(invoice.metered_exact, invoice.currency)}
          <span className="hr-exact">{exactly(invoice.metered_exact)}</span>
        </dd>
      </div>
      <div className="hr-figure">
        <dt>At this rate, per month</dt>
        <dd>
          {invoice.amount_per_month
            ? money(invoice.amount_per_month, invoice.currency)
            : "too early to say"}
          <span className="hr-exact">{rateSpan(invoice)}</span>
        </dd>
      </div>
      <div className="hr-figure hr-words">
        <dt>Knows of usage until</dt>
        <dd>{moment(invoice.as_of).slice(0, 19)} UTC</dd>
      </div>
      <div className="hr-figure hr-words">
        <dt>Price book</dt>
        <dd>
          {invoice.price_book_version}
          <span className="hr-exact">
            at least {money(invoice.monthly_minimum, invoice.currency)} a month
          </span>
        </dd>
      </div>
    </dl>
  );
}

function Lines({ invoice, file }: { invoice: InvoiceBody; file: InvoiceFile | undefined }) {
  const [open, setOpen] = useState<number | null>(null);
  return (
    <Table aria-label="Lines" variant="compact">
      <Thead>
        <Tr>
          <Th width={40}>What</Th>
          <Th className="hr-number">Quantity</Th>
          <Th className="hr-number">Exactly</Th>
          <Th className="hr-number">Amount</Th>
        </Tr>
      </Thead>
      <Tbody>
        {(invoice.lines ?? []).map((line) => {
          const trail = file?.lines.find((each) => each.line === String(line.line));
          return (
            <Fragment key={line.line}>
              <Tr>
                <Td dataLabel="What">
                  <Button
                    variant="link"
                    isInline
                    isDisabled={!trail}
                    aria-expanded={open === line.line}
                    onClick={() => setOpen((now) => (now === line.line ? null : line.line))}
                  >
                    {line.description}
                  </Button>
                </Td>
                <Td dataLabel="Quantity" className="hr-number">
                  <span title={`${line.quantity} ${line.unit}`}>{quantityOf(line)}</span>
                </Td>
                <Td dataLabel="Exactly" className="hr-number">
                  <span title={unitPrice(line)}>{grouped(trimmed(line.amount_exact))}</span>
                </Td>
                <Td dataLabel="Amount" className="hr-number">
                  {money(line.amount, line.currency)}
                </Td>
              </Tr>
              {open === line.line && trail && (
                <Tr>
                  <Td colSpan={4}>
                    <LineTrail line={line} trail={trail} />
                  </Td>
                </Tr>
              )}
            </Fragment>
          );
        })}
        <Tr>
          <Th scope="row">Total, the sum of the amounts above</Th>
          <Td />
          <Td />
          <Td dataLabel="Amount" className="hr-number">
            <strong>{money(invoice.total, invoice.currency)}</strong>
          </Td>
        </Tr>
      </Tbody>
    </Table>
  );
}

function unitPrice(line: Line): string {
  return `${line.quantity} ${line.unit} at ${trimmed(line.unit_price)} ${line.currency} each`;
}

function recipeOf(invoice: InvoiceBody) {
  return {
    cli: `headrace invoice get ${invoice.id}`,
    curl: curl("GET", `/v1/invoices/${invoice.id}`),
    python: python(`print(b.admin.invoice("${invoice.id}"))`),
  };
}
