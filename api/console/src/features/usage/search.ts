// The state of the usage page in its address: time range, topic, meter and stacking.

export const RANGES = ["24h", "7d", "30d", "month", "last-month", "dates"] as const;
export type Range = (typeof RANGES)[number];

export type UsageSearch = {
  range?: Range;
  from?: string;
  to?: string;
  topic?: string;
  meter?: string;
  stack?: "topic" | "meter";
};

export const RANGE_TITLES: Record<Range, string> = {
  "24h": "24 hours",
  "7d": "7 days",
  "30d": "30 days",
  month: "This month",
  "last-month": "Last month",
  dates: "Custom",
};

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Up to so many days bars are hours. */
const HOURLY_DAYS_MAX = 2;

function isDate(text: unknown): text is string {
  return /^[0-9]{4}-[0-9]{2}-[0-9]{2}$/.test(String(text)) && !Number.isNaN(Date.parse(`${text}`));
}

export function usageSearch(given: Record<string, unknown>): UsageSearch {
  return {
    range: RANGES.find((range) => range === given.range),
    from: isDate(given.from) ? given.from : undefined,
    to: isDate(given.to) ? given.to : undefined,
    topic: typeof given.topic === "string" ? given.topic : undefined,
    meter: typeof given.meter === "string" ? given.meter : undefined,
    stack: given.stack === "meter" ? "meter" : undefined,
  };
}

/** A time [from, to) in milliseconds of UTC, and how long a bar is. */
export type Span = { from: number; to: number; hourly: boolean };

/** The time that is asked for. `to` of dates is the last day, which is meant whole. */
export function spanOf(search: UsageSearch, now: number): Span {
  const today = now - (now % DAY_MS);
  const date = new Date(now);
  const month = (shift: number) => Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + shift, 1);
  const range = search.range ?? "month";
  if (range === "24h") {
    const to = now - (now % HOUR_MS) + HOUR_MS;
    return { from: to - DAY_MS, to, hourly: true };
  }
  if (range === "7d") return { from: today - 6 * DAY_MS, to: today + DAY_MS, hourly: false };
  if (range === "30d") return { from: today - 29 * DAY_MS, to: today + DAY_MS, hourly: false };
  if (range === "last-month") return { from: month(-1), to: month(0), hourly: false };
  if (range === "dates") {
    const from = search.from ? Date.parse(search.from) : today;
    const to = Math.max(from, search.to ? Date.parse(search.to) : today) + DAY_MS;
    return { from, to, hourly: to - from <= HOURLY_DAYS_MAX * DAY_MS };
  }
  return { from: month(0), to: month(1), hourly: false };
}

/** Every bar of a span up to `until`, named as the API names its groups. */
export function bucketsOf(span: Span, until: number): string[] {
  const step = span.hourly ? HOUR_MS : DAY_MS;
  const found: string[] = [];
  for (let at = span.from; at < Math.min(span.to, until); at += step) {
    const iso = new Date(at).toISOString();
    found.push(span.hourly ? `${iso.slice(0, 19)}Z` : iso.slice(0, 10));
  }
  return found;
}
