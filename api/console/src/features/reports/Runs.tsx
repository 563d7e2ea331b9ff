// The report runs: start one, and see how each one ended.

import "../../ui/figures.css";
import {
  Button,
  EmptyState,
  EmptyStateBody,
  Label,
  PageSection,
  Spinner,
  Title,
  Toolbar,
  ToolbarContent,
  ToolbarItem,
} from "@patternfly/react-core";
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { Link } from "@tanstack/react-router";
import { usePages } from "../../hooks/usePages";
import { useMay } from "../../hooks/useSession";
import { useStartReport } from "../../hooks/useStartReport";
import { count, moment } from "../../lib/format";
import { curl, python } from "../../lib/recipe";
import { KIND_WORDS, KINDS, kindTitle, type ReportRun } from "../../lib/reports";
import { CopyAs } from "../../ui/CopyAs";
import { More } from "../../ui/More";
import { Problem } from "../../ui/Problem";
import { failureOf, isOver, pollAfter, resultOf, took } from "./run";

const PATH = "/v1/report-runs?newest_first=true&page_size=50";

const RECIPE = {
  cli: "headrace report run usage --wait",
  curl: curl("POST", "/v1/report-runs", { kind: "usage" }),
  python: python('b.admin.run_report("usage", wait=True)'),
};

export function Runs() {
  const start = useStartReport();
  const mayRun = useMay("reports:create");
  const runs = usePages<ReportRun>(["report-runs"], PATH, (items, asked) =>
    items.every(isOver) ? false : pollAfter(asked),
  );
  return (
    <PageSection>
      <Toolbar>
        <ToolbarContent alignItems="center">
          <ToolbarItem>
            <Title headingLevel="h1">Reports</Title>
          </ToolbarItem>
          <ToolbarItem align={{ default: "alignEnd" }} className="hr-acts">
            {mayRun &&
              KINDS.map((kind) => (
                <Button
                  key={kind}
                  isLoading={start.isPending && start.variables === kind}
                  isDisabled={start.isPending}
                  onClick={() => start.mutate(kind)}
                >
                  Run the {KIND_WORDS[kind].title.toLowerCase()}
                </Button>
              ))}
            <CopyAs recipe={RECIPE} />
          </ToolbarItem>
        </ToolbarContent>
      </Toolbar>
      {start.isError && <Problem error={start.error} />}
      {runs.isPending && <Spinner aria-label="Loading" />}
      {runs.isError && <Problem error={runs.error} />}
      {runs.data && runs.items.length === 0 && (
        <EmptyState titleText="No report has run yet" headingLevel="h2">
          <EmptyStateBody>
            {KINDS.map((kind) => KIND_WORDS[kind].says).join(" ")} A run is published whole or not
            at all, and the same log gives the same files, to the byte.
          </EmptyStateBody>
        </EmptyState>
      )}
      {runs.items.length > 0 && <List runs={runs.items} />}
      <More pages={runs}>Older runs</More>
    </PageSection>
  );
}

function List({ runs }: { runs: ReportRun[] }) {
  return (
    <>
      <Table aria-label="Report runs">
        <Thead>
          <Tr>
            <Th>Report</Th>
            <Th>State</Th>
            <Th modifier="nowrap">Started (UTC)</Th>
            <Th className="hr-number">Took</Th>
            <Th className="hr-number">Rows</Th>
            <Th width={30}>Outcome</Th>
          </Tr>
        </Thead>
        <Tbody>
          {runs.map((run) => (
            <Tr key={run.id}>
              <Td dataLabel="Report">
                <Link to="/reports/$runId" params={{ runId: run.id }}>
                  {kindTitle(run.kind)}
                </Link>
                <span className="hr-exact hr-mono">{run.id}</span>
              </Td>
              <Td dataLabel="State">
                <RunState run={run} />
              </Td>
              <Td dataLabel="Started (UTC)" className="hr-nowrap">
                {moment(run.created_at).slice(0, 19)}
              </Td>
              <Td dataLabel="Took" className="hr-number">
                {run.started_at && run.finished_at ? took(run.started_at, run.finished_at) : "–"}
              </Td>
              <Td dataLabel="Rows" className="hr-number">
                {rowsOf(run)}
              </Td>
              <Td dataLabel="Outcome" modifier="breakWord">
                {outcomeOf(run)}
              </Td>
            </Tr>
          ))}
        </Tbody>
      </Table>
      <p className="hr-note" aria-live="polite">
        {runs.length} {runs.length === 1 ? "run" : "runs"}
      </p>
    </>
  );
}

export function RunState({ run }: { run: ReportRun }) {
  if (resultOf(run)?.supersededBy) return <Label status="warning">Superseded</Label>;
  if (run.state === "SUCCEEDED") return <Label status="success">Published</Label>;
  if (run.state === "FAILED") return <Label status="danger">Failed</Label>;
  return <Label status="info">{run.state === "RUNNING" ? "Running" : "Queued"}</Label>;
}

function rowsOf(run: ReportRun): string {
  const rows = resultOf(run)?.totals.find(([name]) => name === "rows")?.[1];
  return rows && /^[0-9]+$/.test(rows) ? count(BigInt(rows)) : "–";
}

function outcomeOf(run: ReportRun): string {
  if (run.state === "FAILED") return failureOf(run).code;
  const result = resultOf(run);
  if (!result) return "";
  if (result.supersededBy) return `Not shown: ${result.supersededBy} started later`;
  if (result.complete === false) return "Published, but not complete: see its evidence";
  return `${result.files.length} files`;
}
