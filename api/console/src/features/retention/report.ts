// What of the retention report the pages read. Whole numbers come as text; what is absent is unknown.

import type { components } from "../../../build/schema";
import { OTHERS, type Part } from "../../lib/stacks";

export type Due = { bytes: string; records: string; oldest_after?: string | null };
export type Policy = {
  generation: string;
  changed_at: string;
  by: string;
  retention_ms: string;
  retention_bytes: string;
  min_retention_ms: string;
  sources: Record<string, string>;
};
export type Deleted = {
  cause: string;
  trims: string;
  bytes: string;
  records: string;
  age_min_ms?: string | null;
  age_p50_ms?: string | null;
  age_max_ms?: string | null;
};
export type Violation = {
  code: string;
  partition: string;
  group?: string | null;
  detail: string;
};
export type TopicReport = {
  topic: string;
  topic_id: string;
  exists: boolean;
  policy?: Policy | null;
  history: Policy[];
  live_bytes: string;
  live_records: string;
  held_bytes?: string | null;
  hold_blocked_bytes?: string | null;
  oldest_at?: string | null;
  deleted: Deleted[];
  upcoming: Record<string, Due>;
  ages: { bucket: string; bytes: string; records: string }[];
  schedule: { day: number; bytes: string; records: string }[];
  violations: Violation[];
};
/** What went on a day for one cause. */
export type Day = components["schemas"]["DayOfDeletions"];
/** The sums over every topic, also those whose own report was not asked for. */
export type Summary = components["schemas"]["RetentionSummary"];

export const HORIZONS: [string, string][] = [
  ["now", "Due now"],
  ["1h", "Within 1 hour"],
  ["24h", "Within 24 hours"],
  ["7d", "Within 7 days"],
];
/** In this order bars are stacked: by policy first, by hand last. */
export const CAUSES = ["time", "size", "purge"] as const;
const CAUSE_TITLES: Record<string, string> = {
  time: "By age",
  size: "By size",
  purge: "Purged",
};

export function causeTitle(cause: string): string {
  return CAUSE_TITLES[cause] ?? cause;
}

const AGE_TITLES: Record<string, string> = { future: "future", unknown: "unknown" };

export function ageTitle(bucket: string): string {
  return AGE_TITLES[bucket] ?? bucket;
}

/** Every bucket of the report, youngest first, as the report orders them. */
export function ageBuckets(summary: Summary): string[] {
  return summary.ages.map((age) => age.bucket);
}

export function ageParts(topics: TopicReport[], summary: Summary): Part[] {
  const parts = topics.flatMap((topic) =>
    topic.ages.map(({ bucket, bytes }) => ({ bucket, name: topic.topic, value: bytes })),
  );
  return withOthers(parts, summary.ages);
}

/** What the sums hold beyond the parts is of topics that were not asked for. */
function withOthers(parts: Part[], sums: { bucket: string; bytes: string }[]): Part[] {
  const named = new Map<string, bigint>();
  for (const { bucket, value } of parts) {
    named.set(bucket, (named.get(bucket) ?? 0n) + BigInt(value));
  }
  const others = sums.map(({ bucket, bytes }) => ({
    bucket,
    name: OTHERS,
    value: String(BigInt(bytes) - (named.get(bucket) ?? 0n)),
  }));
  return [...parts, ...others.filter((part) => part.value !== "0")];
}

const DAY_MS = 86_400_000;
const DAYS_SHOWN = 30;

function dayAfter(asOf: string, days: number): string {
  return new Date(Date.parse(asOf.slice(0, 10)) + days * DAY_MS).toISOString().slice(0, 10);
}

/** The last days up to the report. */
export function pastDays(asOf: string): string[] {
  return Array.from({ length: DAYS_SHOWN }, (_, index) => dayAfter(asOf, index - DAYS_SHOWN + 1));
}

export function deletedParts(days: Day[]): Part[] {
  return days.map(({ day, cause, bytes }) => ({
    bucket: day,
    name: causeTitle(cause),
    value: bytes,
  }));
}

export function comingDays(asOf: string): string[] {
  return Array.from({ length: DAYS_SHOWN }, (_, index) => dayAfter(asOf, index));
}

export function dueParts(topics: TopicReport[], summary: Summary, asOf: string): Part[] {
  const parts = topics.flatMap((topic) =>
    topic.schedule.map(({ day, bytes }) => ({
      bucket: dayAfter(asOf, day),
      name: topic.topic,
      value: bytes,
    })),
  );
  const sums = summary.schedule.map(({ day, bytes }) => ({ bucket: dayAfter(asOf, day), bytes }));
  return withOthers(parts, sums);
}

/** What each rule says: word for word as reports/retention/rules.py, which a test compares. */
export const RULES: Record<string, string> = {
  OVER_RETAINED:
    "More than one segment of data is older than the policy allows, by more than five minutes, " +
    "and no legal hold keeps it. A segment is deleted once its youngest record is due, so up to " +
    "one segment of older records is normal. A policy is evaluated five minutes after its last " +
    "change.",
  UNDER_RETAINED:
    "A record was deleted before it reached the age that the policy in effect guarantees: the " +
    "minimum age for deletion by size, the retention age for deletion by time. Purges are " +
    "requested and never counted.",
  POLICY_MISMATCH:
    "More than five minutes after the last change, the node applies other limits than the control " +
    "plane specifies.",
  UNBOUNDED: "Neither age nor size limits the topic: nothing is ever deleted.",
  CLOCK_SKEW:
    "Records are dated more than five minutes in the future, or were deleted before the time of " +
    "their append. Their age and expiry cannot be trusted.",
  UNREAD_DELETED:
    "The committed offset of a group is before the log start: the group will never read the " +
    "records in between.",
  UNREAD_AT_RISK:
    "Records that a group has not read yet are due for deletion within the next 24 hours.",
};
