// The report runs: start one, and see how each one ended.

import { Button } from "@patternfly/react-core";
import { Link } from "@tanstack/react-router";
import { usePages } from "../../hooks/usePages";
import { useMay } from "../../hooks/useSession";
import { useStartReport } from "../../hooks/useStartReport";
import { count, counted, moment } from "../../lib/format";
import { curl, python } from "../../lib/recipe";
import { KIND_WORDS, KINDS, kindTitle, type ReportRun } from "../../lib/reports";
import type { Column } from "../../ui/DataTable";
import { Empty } from "../../ui/Empty";
import { List } from "../../ui/List";
import { ListPage } from "../../ui/ListPage";
import { Problem } from "../../ui/Problem";
import { RunState } from "./RunState";
import { failureOf, isOver, pollAfter, resultOf, took } from "./run";

const PATH = "/v1/report-runs?newest_first=true&page_size=50";

const RECIPE = {
  cli: "headrace report run usage --wait",
  curl: curl("POST", "/v1/report-runs", { kind: "usage" }),
  python: python('b.admin.run_report("usage", wait=True)'),
};

const COLUMNS: Column<ReportRun>[] = [
  {
    title: "Report",
    cell: (run) => (
      <>
        <Link to="/reports/$runId" params={{ runId: run.id }}>
          {kindTitle(run.kind)}
        </Link>
        <span className="hr-exact hr-mono">{run.id}</span>
      </>
    ),
  },
  { title: "State", cell: (run) => <RunState run={run} /> },
  {
    title: "Started (UTC)",
    wrap: "never",
    cell: (run) => moment(run.created_at).slice(0, 19),
  },
  {
    title: "Duration",
    isNumber: true,
    cell: (run) =>
      run.started_at && run.finished_at ? took(run.started_at, run.finished_at) : "–",
  },
  { title: "Rows", isNumber: true, cell: rowsOf },
  { title: "Result", width: 30, wrap: "anywhere", cell: outcomeOf },
];

export function Runs() {
  const start = useStartReport();
  const mayRun = useMay("reports:create");
  const runs = usePages<ReportRun>(["report-runs"], PATH, (items, asked) =>
    items.every(isOver) ? false : pollAfter(asked),
  );
  const buttons = KINDS.map((kind) => (
    <Button
      key={kind}
      isLoading={start.isPending && start.variables === kind}
      isDisabled={start.isPending}
      onClick={() => start.mutate(kind)}
    >
      Run {KIND_WORDS[kind].title.toLowerCase()}
    </Button>
  ));
  return (
    <ListPage title="Reports" recipe={RECIPE} actions={mayRun && buttons}>
      {start.isError && <Problem error={start.error} />}
      <List
        label="Report runs"
        noun="run"
        query={runs}
        items={runs.items}
        columns={COLUMNS}
        keyOf={(run) => run.id}
        pages={runs}
        empty={
          <Empty
            title="No reports yet"
            body={`${KINDS.map((kind) => KIND_WORDS[kind].says).join(" ")} A run is published completely or not at all, and the same log always gives identical files.`}
          />
        }
      />
    </ListPage>
  );
}

function rowsOf(run: ReportRun): string {
  const rows = resultOf(run)?.totals.find(([name]) => name === "rows")?.[1];
  return rows && /^[0-9]+$/.test(rows) ? count(BigInt(rows)) : "–";
}

function outcomeOf(run: ReportRun): string {
  if (run.state === "FAILED") return failureOf(run).code;
  const result = resultOf(run);
  if (!result) return "";
  if (result.supersededBy) return `Not shown: superseded by ${result.supersededBy}`;
  if (result.complete === false) return "Published, but incomplete: see its evidence";
  return counted(result.files.length, "file");
}
