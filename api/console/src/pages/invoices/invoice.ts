// What the pages read of an invoice. Money and quantities are exact text.

import { shown } from "../usage/meters";

export type Check = {
  name: string;
  state: string;
  detail: string;
  figures: Record<string, string>;
};
export type TopicShare = {
  topic: string;
  topic_id: string;
  quantity: string;
  amount_exact: string;
  amount: string;
};
export type HourShare = { hour: string; topic_id: string; quantity: string };
/** What a partition took in within an hour. Without offsets: the log holds none of it any more. */
export type OffsetRange = {
  topic_id: string;
  partition: string | number;
  hour_us: string;
  bytes: string;
  records: string;
  first_offset?: string | null;
  end_offset?: string | null;
};
export type Line = {
  line: number;
  sku: string;
  description: string;
  quantity: string;
  unit: string;
  unit_price: string;
  amount_exact: string;
  amount: string;
  currency: string;
};
/** A line all the way down, as the invoice's own JSON file has it. */
export type Trail = {
  line: number;
  topics?: TopicShare[];
  hours?: HourShare[];
  partitions?: OffsetRange[];
};
/** The JSON file of an invoice: what the API's answer leaves out. */
export type InvoiceFile = { lines: Trail[]; reconciliation: Check[] };
export type Invoice = {
  id: string;
  organization_id: string;
  organization?: string;
  period: string;
  state: string;
  blocked: boolean;
  total: string;
  currency: string;
  as_of?: string | null;
  amount_per_month?: string | null;
  run_id: string;
  name: string;
  price_book_version?: string;
  lines?: Line[];
};

/** "November 2026" for 2026-11. */
export function periodTitle(period: string): string {
  const at = Date.parse(`${period}-01T00:00:00Z`);
  if (Number.isNaN(at)) return period;
  const month = { month: "long", year: "numeric", timeZone: "UTC" } as const;
  return new Date(at).toLocaleDateString("en-GB", month);
}

/** A quantity as people say it; of the minimum there is none. */
export function quantityOf(line: Line): string {
  return line.sku === "monthly_minimum" ? "–" : shown(line.sku, line.quantity, line.unit);
}

const CHECKS: Record<string, string> = {
  counters: "No counter lost anything",
  quantities: "Raw, hourly, daily and rated sums are one",
  log: "The log itself holds what was billed",
  partition_seconds: "Partitions were billed while they lived",
  unattributed: "Nothing is nobody's",
  lines: "The lines add up to the invoice",
};

export function checkTitle(name: string): string {
  return CHECKS[name] ?? name;
}

export function isGreen(check: Check): boolean {
  return check.state === "GREEN";
}
