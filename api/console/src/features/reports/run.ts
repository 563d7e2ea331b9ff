// What of a report run the pages read: its manifest, which is data of a job, field by field.

import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import type { components } from "../../../build/schema";
import { useAct } from "../../hooks/useAct";
import { call } from "../../lib/client";

export type ReportRun = components["schemas"]["ReportRunBody"];
export type Kind = NonNullable<components["schemas"]["ReportRunCreate"]["kind"]>;

export const KINDS: readonly Kind[] = ["usage", "retention"];

export const KIND_WORDS: Record<Kind, { title: string; says: string }> = {
  usage: {
    title: "Usage report",
    says: "Counts what every topic and key used, hour by hour, from the log itself, and prices it.",
  },
  retention: {
    title: "Retention report",
    says: "Says what was deleted and why, how old what is left is, what goes next, and which promise is broken.",
  },
};

export function kindTitle(kind: string): string {
  return KIND_WORDS[kind as Kind]?.title ?? kind;
}

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
    hint: String(
      error.hint ?? "The end of the job's log is below; start another run once its cause is gone.",
    ),
    log: String(error.log ?? ""),
  };
}

export function fileAddress(runId: string, name: string): string {
  return `/v1/report-runs/${encodeURIComponent(runId)}/files/${encodeURIComponent(name)}`;
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

/** Starts a run and shows it. */
export function useStart() {
  const queries = useQueryClient();
  const navigate = useNavigate();
  return useAct({
    mutationFn: (kind: Kind) => call<ReportRun>("POST", "/v1/report-runs", { body: { kind } }),
    onSuccess: async (run) => {
      await queries.invalidateQueries({ queryKey: ["report-runs"] });
      navigate({ to: "/reports/$runId", params: { runId: run.id } });
    },
  });
}
