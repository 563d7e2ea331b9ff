// What the pages read of an invoice. Money and quantities are exact text.

import type { components } from "../../../build/schema";
import { shown } from "../../lib/meters";

export type Check = {
  name: string;
  title?: string;
  state: string;
  detail: string;
  figures: Record<string, string>;
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
export type Line = components["schemas"]["LineBody"];
export type TopicShare = components["schemas"]["Share"];
export type Invoice = components["schemas"]["InvoiceBody"];
/** A line all the way down, as the invoice's own JSON file has it. */
export type Trail = {
  line: string;
  hours?: HourShare[];
  partitions?: OffsetRange[];
};
/** The JSON file of an invoice: what the API's answer leaves out. */
export type InvoiceFile = { lines: Trail[] };

/** The name of its file of a kind, such as json. */
export function fileOf(invoice: Invoice, kind: string): string {
  return invoice.files.find((name) => name.endsWith(`.${kind}`)) ?? "";
}

export function checksOf(given: unknown): Check[] {
  return Array.isArray(given) ? (given as Check[]) : [];
}

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

/** What a check asks, in the report's own words; one of an earlier release has its name alone. */
export function checkTitle(check: Check): string {
  return check.title || check.name.replaceAll("_", " ");
}

export function isGreen(check: Check): boolean {
  return check.state === "GREEN";
}
