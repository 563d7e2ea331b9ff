// What of a report run the pages read: its manifest, which is data of a job, field by field.

import type { ReportRun } from "../../lib/reports";

export type PublishedFile = { name: string; bytes: string; sha256: string };

export type Result = {
  files: PublishedFile[];
  totals: [string, string][];
  partitions: [string, number][];
  complete: boolean | null;
  input: string;
  /** The run that is shown in place of this one, for it started later; empty if there is none. */
  supersededBy: string;
};

type Loose = Record<string, unknown>;

function objectOf(value: unknown): Loose {
  return typeof value === "object" && value !== null ? (value as Loose) : {};
}

/** The manifest of a run that has published; null of any other. */
export function resultOf(run: ReportRun): Result | null {
  if (!run.result) return null;
  const found = run.result as Loose;
  const files = Array.isArray(found.files) ? found.files.map(objectOf) : [];
  return {
    files: files.map((file) => ({
      name: String(file.name),
      bytes: String(file.bytes),
      sha256: String(file.sha256),
    })),
    totals: Object.entries(objectOf(found.totals)).map(([name, value]) => [name, String(value)]),
    partitions: Object.entries(objectOf(found.partitions)).map(([name, n]) => [name, Number(n)]),
    complete: typeof found.complete === "boolean" ? found.complete : null,
    input: String(found.input_sha256 ?? ""),
    supersededBy: String(found.superseded_by ?? ""),
  };
}

/** Why a run failed: in the words of its job where it had any. */
export function failureOf(run: ReportRun) {
  const error = run.error ?? {};
  return {
    code: String(error.code ?? "REPORT_FAILED"),
    detail: String(error.detail ?? "The job ended without a result."),
    hint: String(error.hint ?? "See the job log below. Fix the cause, then run the report again."),
    log: String(error.log ?? ""),
  };
}

export function isOver(run: ReportRun | undefined): boolean {
  return run?.state === "SUCCEEDED" || run?.state === "FAILED";
}

const FIRST_POLL_MS = 500;
const POLL_MS_MAX = 8000;

/** Ever more slowly, the longer it takes: a job takes half a minute or half an hour. */
export function pollAfter(asked: number): number {
  return Math.min(POLL_MS_MAX, FIRST_POLL_MS * 1.4 ** asked);
}

/** "38 s" between two times. */
export function took(from: string, to: string | number): string {
  const end = typeof to === "number" ? to : Date.parse(to);
  const seconds = Math.max(0, Math.round((end - Date.parse(from)) / 1000));
  return seconds < 120 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}
