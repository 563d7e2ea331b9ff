// One invoice: its total, its line items, and its reconciliation.

import { Button } from "@patternfly/react-core";
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { Fragment, useState } from "react";
import { call } from "../../lib/client";
import { exactly, grouped, money, trimmed } from "../../lib/decimal";
import { moment } from "../../lib/format";
import { curl, python } from "../../lib/recipe";
import { fileAddress } from "../../lib/reports";
import { CopyAs } from "../../ui/CopyAs";
import { DetailPage } from "../../ui/DetailPage";
import { Figure, Figures } from "../../ui/Figures";
import { PageHeader } from "../../ui/PageHeader";
import { Problem } from "../../ui/Problem";
import { RunLink } from "../../ui/RunLink";
import { Section } from "../../ui/Section";
import { InvoiceState } from "./InvoiceState";
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
  return (
    <DetailPage query={invoice} noun="invoice" parent={{ to: "/invoices", all: "All invoices" }}>
      {(body) => <Shown invoice={body} />}
    </DetailPage>
  );
}

function Shown({ invoice }: { invoice: InvoiceBody }) {
  // The way down to hours and offsets is evidence: it is read from the file that was published.
  const file = useQuery({
    queryKey: ["invoices", invoice.id, "file", invoice.run_id],
    queryFn: () => call<InvoiceFile>("GET", fileAddress(invoice.run_id, fileOf(invoice, "json"))),
  });
  const checks = checksOf(invoice.reconciliation);
  return (
    <>
      <PageHeader
        title={periodTitle(invoice.period)}
        parent={{ to: "/invoices", title: "Invoices" }}
        state={
          <>
            <InvoiceState invoice={invoice} /> <ReconciliationBadge checks={checks} />
          </>
        }
        actions={
          <>
            <Files invoice={invoice} />
            <CopyAs recipe={recipeOf(invoice)} />
          </>
        }
      />
      <div className="hr-stack">
        <Sums invoice={invoice} />
        <Section title="Line items">
          <Lines invoice={invoice} file={file.data} />
        </Section>
        {file.isError && <Problem error={file.error} />}
        <Reconciliation checks={checks} />
        <p className="hr-muted">
          Computed by <RunLink id={invoice.run_id} /> and recomputed by every usage report. Invoices
          remain drafts: this release does not issue them.
        </p>
      </div>
    </>
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
        Open HTML
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
  if (!invoice.amount_per_month) return "less than one hour of usage";
  if (invoice.as_of >= invoice.period_end) return "the month has ended";
  return invoice.rate_from
    ? `based on usage since ${moment(invoice.rate_from).slice(0, 16)} UTC`
    : "";
}

function Sums({ invoice }: { invoice: InvoiceBody }) {
  const { currency, amount_per_month: perMonth } = invoice;
  return (
    <Figures>
      <Figure term="Total" note="sum of the rounded amounts">
        {money(invoice.total, currency)}
      </Figure>
      <Figure term="Metered" note={exactly(invoice.metered_exact)}>
        {money(invoice.metered_exact, currency)}
      </Figure>
      <Figure term="Monthly projection" note={rateSpan(invoice)}>
        {perMonth ? money(perMonth, currency) : "not enough data"}
      </Figure>
      <Figure term="As of" isText>
        {moment(invoice.as_of).slice(0, 19)} UTC
      </Figure>
      <Figure
        term="Price book"
        note={`minimum ${money(invoice.monthly_minimum, currency)} per month`}
        isText
      >
        {invoice.price_book_version}
      </Figure>
    </Figures>
  );
}

function Lines({ invoice, file }: { invoice: InvoiceBody; file: InvoiceFile | undefined }) {
  const [open, setOpen] = useState<number | null>(null);
  return (
    <Table aria-label="Line items" variant="compact">
      <Thead>
        <Tr>
          <Th width={40}>Description</Th>
          <Th className="hr-number">Quantity</Th>
          <Th className="hr-number">Exact amount</Th>
          <Th className="hr-number">Amount</Th>
        </Tr>
      </Thead>
      <Tbody>
        {(invoice.lines ?? []).map((line) => {
          const trail = file?.lines.find((each) => each.line === String(line.line));
          return (
            <Fragment key={line.line}>
              <Tr>
                <Td dataLabel="Description">
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
                <Td dataLabel="Exact amount" className="hr-number">
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
          <Th scope="row">Total</Th>
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
  return `${line.quantity} ${line.unit} at ${trimmed(line.unit_price)} ${line.currency} per unit`;
}

function recipeOf(invoice: InvoiceBody) {
  return {
    cli: `headrace invoice get ${invoice.id}`,
    curl: curl("GET", `/v1/invoices/${invoice.id}`),
    python: python(`print(b.admin.invoice("${invoice.id}"))`),
  };
}
