// The report that is shown: its topics and days are read once and shared by the three views of it.

import { Spinner } from "@patternfly/react-core";
import { useQuery } from "@tanstack/react-query";
import type { components } from "../../../build/schema";
import { moment } from "../../api/bytes";
import { all, call } from "../../api/client";
import { Problem } from "../../widgets/Problem";
import { NoReport } from "../reports/NoReport";
import { RunLink } from "../reports/RunLink";
import { Overview } from "./Overview";
import type { TopicReport } from "./report";
import type { Tab } from "./search";
import { TopicPolicies } from "./TopicPolicies";
import { Violations } from "./Violations";

type Entry = components["schemas"]["TopicReport"];
type Body = components["schemas"]["RetentionBody"];
type Deletions = components["schemas"]["Deletions"];

async function topicsOf(): Promise<TopicReport[]> {
  const entries = await all<Entry>("/v1/reports/retention/topics");
  const topics = entries.map((entry) => entry.report as unknown as TopicReport);
  return topics.sort((a, b) => (a.topic < b.topic ? -1 : 1));
}

export function Report({ view }: { view: Exclude<Tab, "holds"> }) {
  const report = useQuery({
    queryKey: ["retention"],
    queryFn: () => call<Body>("GET", "/v1/reports/retention?page_size=1"),
  });
  const run = report.data?.run_id;
  const topics = useQuery({
    queryKey: ["retention", "topics", run],
    queryFn: topicsOf,
    enabled: Boolean(run),
  });
  const deletions = useQuery({
    queryKey: ["retention", "deletions", run],
    queryFn: () => call<Deletions>("GET", "/v1/reports/retention/deletions"),
    enabled: Boolean(run),
  });
  const failed = report.error ?? topics.error ?? deletions.error;
  if (failed) return <Problem error={failed} />;
  if (report.data && !run) return <NoReport kind="retention" />;
  if (!report.data || !topics.data || !deletions.data) return <Spinner aria-label="Loading" />;
  const asOf = report.data.as_of ?? "";
  return (
    <>
      {view === "overview" && (
        <Overview topics={topics.data} days={deletions.data.days} asOf={asOf} />
      )}
      {view === "topics" && <TopicPolicies topics={topics.data} />}
      {view === "violations" && <Violations topics={topics.data} />}
      <p className="hr-note">
        As of {moment(asOf).slice(0, 19)} UTC, by <RunLink id={run ?? ""} />. What happened since is
        in the next run.
      </p>
    </>
  );
}
