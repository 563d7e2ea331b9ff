// The reports that there are, and the addresses of what a run published.

import type { components } from "../../build/schema";

export type ReportRun = components["schemas"]["ReportRunBody"];
export type Kind = NonNullable<components["schemas"]["ReportRunCreate"]["kind"]>;

export const KINDS: readonly Kind[] = ["usage", "retention"];

export const KIND_WORDS: Record<Kind, { title: string; says: string }> = {
  usage: {
    title: "Usage report",
    says: "Computes the hourly usage of every topic and key from the log, and its cost.",
  },
  retention: {
    title: "Retention report",
    says: "Shows what was deleted and why, stored data by age, upcoming deletions, and violations.",
  },
};

export function kindTitle(kind: string): string {
  return KIND_WORDS[kind as Kind]?.title ?? kind;
}

export function fileAddress(runId: string, name: string): string {
  return `/v1/report-runs/${encodeURIComponent(runId)}/files/${encodeURIComponent(name)}`;
}
