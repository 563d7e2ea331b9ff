// The policy of each topic, where it comes from, and what was deleted by it.

import { Card, CardBody, CardTitle, ExpandableSection, Label } from "@patternfly/react-core";
import { count, counted, duration, moment, size } from "../../lib/format";
import { type Column, DataTable } from "../../ui/DataTable";
import { Figure, Figures } from "../../ui/Figures";
import { TopicLink } from "../../ui/TopicLink";
import { causeTitle, type Deleted, type Policy, type TopicReport } from "./report";

const UNLIMITED = "-1";

/** "7d, up to 8.0 MiB per partition"; or that there is no limit. */
function limits(policy: Policy): string {
  const age = policy.retention_ms === UNLIMITED ? "" : duration(policy.retention_ms);
  const most =
    policy.retention_bytes === UNLIMITED
      ? ""
      : `up to ${size(BigInt(policy.retention_bytes))} per partition`;
  return [age, most].filter(Boolean).join(", ") || "no limit: nothing is deleted";
}

/** Where each limit comes from, since when, and who set it. */
function setBy(policy: Policy): string {
  const origins = [...new Set(Object.values(policy.sources))].join(", ");
  return `source: ${origins}; set ${moment(policy.changed_at).slice(0, 16)} UTC by ${policy.by}`;
}

/** An age in the unit that fits. */
function age(ms: string | null | undefined): string {
  if (ms === null || ms === undefined) return "unknown";
  const seconds = Number(ms) / 1000;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86_400)} d`;
}

export function TopicPolicies({ topics }: { topics: TopicReport[] }) {
  return (
    <div className="hr-stack hr-panel">
      {topics.map((topic) => (
        <Card key={topic.topic_id} component="section" aria-label={topic.topic}>
          <CardTitle component="h2">
            <span className="hr-break">
              {topic.exists ? <TopicLink id={topic.topic_id} name={topic.topic} /> : topic.topic}
            </span>{" "}
            {!topic.exists && <Label>Deleted</Label>}{" "}
            {topic.violations.length > 0 && (
              <Label status="danger">{counted(topic.violations.length, "violation")}</Label>
            )}
          </CardTitle>
          <CardBody>
            <Figures>
              <Figure term="Policy" note={topic.policy && setBy(topic.policy)} isText>
                {topic.policy ? limits(topic.policy) : "unknown to the control plane"}
              </Figure>
              <Figure term="Stored" note={`${count(BigInt(topic.live_records))} records`} isText>
                {size(BigInt(topic.live_bytes))}
              </Figure>
              <Figure term="Oldest record" isText>
                {topic.oldest_at ? `${moment(topic.oldest_at).slice(0, 16)} UTC` : "none"}
              </Figure>
            </Figures>
            <Deletions topic={topic} />
            {topic.history.length > 1 && <History topic={topic} />}
          </CardBody>
        </Card>
      ))}
    </div>
  );
}

const COLUMNS: Column<Deleted>[] = [
  { title: "Cause", cell: (each) => causeTitle(each.cause) },
  { title: "Deletions", isNumber: true, cell: (each) => count(BigInt(each.trims)) },
  { title: "Bytes", isNumber: true, cell: (each) => size(BigInt(each.bytes)) },
  { title: "Records", isNumber: true, cell: (each) => count(BigInt(each.records)) },
  {
    title: "Age when deleted (min, median, max)",
    isNumber: true,
    cell: (each) => [each.age_min_ms, each.age_p50_ms, each.age_max_ms].map(age).join(", "),
  },
];

function Deletions({ topic }: { topic: TopicReport }) {
  if (topic.deleted.length === 0) return <p className="hr-note">Nothing has been deleted yet.</p>;
  return (
    <div className="hr-panel">
      <DataTable
        label={`Deleted from ${topic.topic}`}
        columns={COLUMNS}
        rows={topic.deleted}
        keyOf={(each) => each.cause}
        isCompact
      />
    </div>
  );
}

function History({ topic }: { topic: TopicReport }) {
  return (
    <ExpandableSection toggleText={`Policy history (${topic.history.length})`}>
      <ul>
        {topic.history.toReversed().map((policy) => (
          <li key={policy.generation}>
            {moment(policy.changed_at).slice(0, 19)} UTC: {limits(policy)}, set by {policy.by}
          </li>
        ))}
      </ul>
    </ExpandableSection>
  );
}
