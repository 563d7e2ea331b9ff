// One report run: how far it is, why it failed, or what it published.

import {
  Alert,
  Button,
  ExpandableSection,
  ProgressStep,
  ProgressStepper,
} from "@patternfly/react-core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { useMay } from "../../hooks/useSession";
import { useStartReport } from "../../hooks/useStartReport";
import { call } from "../../lib/client";
import { moment } from "../../lib/format";
import { curl, python } from "../../lib/recipe";
import { KINDS, kindTitle, type ReportRun } from "../../lib/reports";
import { CopyAs } from "../../ui/CopyAs";
import { DetailPage } from "../../ui/DetailPage";
import { PageHeader } from "../../ui/PageHeader";
import { Problem } from "../../ui/Problem";
import { Section } from "../../ui/Section";
import { Published } from "./Published";
import { RunState } from "./RunState";
import { failureOf, isOver, pollAfter, took } from "./run";

export function Run() {
  const { runId } = useParams({ from: "/reports/$runId" });
  const queries = useQueryClient();
  const run = useQuery({
    queryKey: ["report-run", runId],
    queryFn: () => call<ReportRun>("GET", `/v1/report-runs/${encodeURIComponent(runId)}`),
    refetchInterval: ({ state }) => !isOver(state.data) && pollAfter(state.dataUpdateCount),
  });
  const state = run.data?.state;
  useEffect(() => {
    // What the pages show is another run's now.
    if (state === "SUCCEEDED") {
      for (const key of ["usage", "invoices", "retention", "reconciliation"]) {
        queries.invalidateQueries({ queryKey: [key] });
      }
    }
  }, [state, queries]);
  return (
    <DetailPage query={run} noun="run" parent={{ to: "/reports", all: "All reports" }}>
      {(body) => <Shown run={body} />}
    </DetailPage>
  );
}

function Shown({ run }: { run: ReportRun }) {
  const start = useStartReport();
  const mayRun = useMay("reports:create");
  const kind = KINDS.find((each) => each === run.kind);
  return (
    <>
      <PageHeader
        title={kindTitle(run.kind)}
        parent={{ to: "/reports", title: "Reports", as: run.id }}
        state={<RunState run={run} />}
        actions={
          <>
            {mayRun && kind && isOver(run) && (
              <Button
                variant="secondary"
                isLoading={start.isPending}
                onClick={() => start.mutate(kind)}
              >
                Run again
              </Button>
            )}
            <CopyAs recipe={recipeOf(run)} />
          </>
        }
      />
      <div className="hr-stack">
        {start.isError && <Problem error={start.error} />}
        <Section title="Progress">
          <Steps run={run} />
          <Receipt runId={run.id} state={run.state} />
        </Section>
        {run.state === "FAILED" && <Failure run={run} />}
        <Published run={run} />
      </div>
    </>
  );
}

function useClock(on: boolean): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    if (!on) return;
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [on]);
  return now;
}

type Variant = "success" | "info" | "pending" | "danger";

/** Of the middle step: a run that failed, failed there. */
const VARIANTS: Record<string, Variant> = {
  QUEUED: "pending",
  RUNNING: "info",
  SUCCEEDED: "success",
  FAILED: "danger",
};

function Steps({ run }: { run: ReportRun }) {
  const now = useClock(!isOver(run));
  const { state } = run;
  const running = VARIANTS[state] ?? "pending";
  const last = state === "SUCCEEDED" ? "success" : "pending";
  const spent = run.started_at
    ? took(run.started_at, run.finished_at ?? now)
    : "Waiting for a free worker.";
  return (
    <ProgressStepper aria-label="Report progress" isCenterAligned>
      <Step
        id="queued"
        variant={state === "QUEUED" ? "info" : "success"}
        title="Queued"
        says={`${moment(run.created_at).slice(0, 19)} UTC`}
      />
      <Step id="running" variant={running} title="Computed" says={spent} />
      <Step
        id="published"
        variant={last}
        title={state === "FAILED" ? "Nothing published" : "Checked and published"}
        says={
          run.finished_at
            ? `${moment(run.finished_at).slice(0, 19)} UTC`
            : "File digests and totals are checked first."
        }
      />
    </ProgressStepper>
  );
}

function Step({
  id,
  variant,
  title,
  says,
}: Record<"id" | "title" | "says", string> & { variant: Variant }) {
  return (
    <ProgressStep
      id={`step-${id}`}
      titleId={`step-title-${id}`}
      variant={variant}
      isCurrent={variant === "info"}
      aria-label={`${title}: ${variant}`}
      description={says}
    >
      {title}
    </ProgressStep>
  );
}

type Operations = { items: { id: string; state: string }[] };

/** The operation of the run: the receipt that programs wait for. */
function Receipt({ runId, state }: { runId: string; state: string }) {
  const found = useQuery({
    queryKey: ["operation", runId, state],
    queryFn: () => call<Operations>("GET", `/v1/operations?target_id=${encodeURIComponent(runId)}`),
  });
  const operation = found.data?.items[0];
  return (
    <p className="hr-note" aria-live="polite">
      {operation ? `Operation ${operation.id}: ${operation.state.toLowerCase()}` : " "}
    </p>
  );
}

function Failure({ run }: { run: ReportRun }) {
  const failure = failureOf(run);
  return (
    <Alert
      variant="danger"
      isInline
      title="The report failed. Nothing was published."
      component="h2"
    >
      <p>{failure.detail}</p>
      <p>{failure.hint}</p>
      <p className="hr-mono">{failure.code}</p>
      {failure.log && (
        <ExpandableSection toggleText="Job log">
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys. */}
          <pre className="hr-code" tabIndex={0}>
            {failure.log}
          </pre>
        </ExpandableSection>
      )}
    </Alert>
  );
}

function recipeOf(run: ReportRun) {
  return {
    cli: "headrace report list",
    curl: curl("GET", `/v1/report-runs/${run.id}`),
    python: python(`print(next(r for r in b.admin.reports() if r["id"] == "${run.id}"))`),
  };
}
