// The report that is shown. Pictures are drawn of its sums and of the largest topics; lists come page
// by page.

import { Spinner } from "@patternfly/react-core";
import { useQuery } from "@tanstack/react-query";
import type { components } from "../../../build/schema";
import { usePages } from "../../hooks/usePages";
import { call, type Page } from "../../lib/client";
import { moment } from "../../lib/format";
import { More } from "../../ui/More";
import { NoReport } from "../../ui/NoReport";
import { Problem } from "../../ui/Problem";
import { RunLink } from "../../ui/RunLink";
import { Overview } from "./Overview";
import type { Summary, TopicReport } from "./report";
import type { Tab } from "./search";
import { TopicPolicies } from "./TopicPolicies";
import { Violations } from "./Violations";

type Entry = components["schemas"]["TopicReport"];
type Body = components["schemas"]["RetentionBody"];
type Deletions = components["schemas"]["Deletions"];

const LARGEST = 50;
const PATH = "/v1/reports/retention/topics";

function reportOf(entry: Entry): TopicReport {
  return entry.report as unknown as TopicReport;
}

async function largest(): Promise<TopicReport[]> {
  const page = await call<Page<Entry>>("GET", `${PATH}?largest=${LARGEST}`);
  return page.items.map(reportOf).sort((a, b) => (a.topic < b.topic ? -1 : 1));
}

export function Report({ view }: { view: Exclude<Tab, "holds"> }) {
  const report = useQuery({
    queryKey: ["retention"],
    queryFn: () => call<Body>("GET", "/v1/reports/retention?page_size=1"),
  });
  const run = report.data?.run_id;
  if (report.error) return <Problem error={report.error} />;
  if (!report.data) return <Spinner aria-label="Loading" />;
  if (!run) return <NoReport kind="retention" />;
  const asOf = report.data.as_of ?? "";
  return (
    <>
      {view === "overview" ? (
        <Pictures run={run} asOf={asOf} summary={report.data.summary} />
      ) : (
        <Listed key={view} run={run} view={view} />
      )}
      <p className="hr-note">
        As of {moment(asOf).slice(0, 19)} UTC, computed by <RunLink id={run} />. Later changes
        appear in the next run.
      </p>
    </>
  );
}

type PicturesProps = { run: string; asOf: string; summary: Summary };

function Pictures({ run, asOf, summary }: PicturesProps) {
  const topics = useQuery({ queryKey: ["retention", "largest", run], queryFn: largest });
  const deletions = useQuery({
    queryKey: ["retention", "deletions", run],
    queryFn: () => call<Deletions>("GET", "/v1/reports/retention/deletions"),
  });
  const failed = topics.error ?? deletions.error;
  if (failed) return <Problem error={failed} />;
  if (!topics.data || !deletions.data) return <Spinner aria-label="Loading" />;
  return <Overview topics={topics.data} summary={summary} days={deletions.data.days} asOf={asOf} />;
}

function Listed({ run, view }: { run: string; view: "topics" | "violations" }) {
  const path = `${PATH}?broken=${view === "violations"}&page_size=50`;
  const pages = usePages<Entry>(["retention", view, run], path);
  if (pages.error) return <Problem error={pages.error} />;
  if (!pages.data) return <Spinner aria-label="Loading" />;
  const topics = pages.items.map(reportOf);
  return (
    <>
      {view === "topics" ? <TopicPolicies topics={topics} /> : <Violations topics={topics} />}
      <More pages={pages} />
    </>
  );
}
