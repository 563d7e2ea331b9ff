// What rules each topic, where that comes from, and what was deleted by it.

import { Card, CardBody, CardTitle, ExpandableSection, Label } from "@patternfly/react-core";
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { Link } from "@tanstack/react-router";
import { count, duration, moment, size } from "../../lib/format";
import { causeTitle, type Policy, type TopicReport } from "./report";

const UNLIMITED = "-1";

/** "7d, at most 8.0 MiB"; what nothing limits is said so. */
function limits(policy: Policy): string {
  const age = policy.retention_ms === UNLIMITED ? "" : duration(policy.retention_ms);
  const most =
    policy.retention_bytes === UNLIMITED
      ? ""
      : `at most ${size(BigInt(policy.retention_bytes))} a partition`;
  return [age, most].filter(Boolean).join(", ") || "nothing is ever deleted";
}

function origin(policy: Policy): string {
  return [...new Set(Object.values(policy.sources))].join(", ");
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
              {topic.exists ? (
                <Link to="/topics/$topicId" params={{ topicId: topic.topic_id }}>
                  {topic.topic}
                </Link>
              ) : (
                topic.topic
              )}
            </span>{" "}
            {!topic.exists && <Label>Deleted</Label>}{" "}
            {topic.violations.length > 0 && (
              <Label status="danger">
                {topic.violations.length}{" "}
                {topic.violations.length === 1 ? "violation" : "violations"}
              </Label>
            )}
          </CardTitle>
          <CardBody>
            <dl className="hr-figures">
              <Figure term="Policy">
                {topic.policy ? limits(topic.policy) : "unknown to the control plane"}
                {topic.policy && (
                  <span className="hr-exact">
                    from: {origin(topic.policy)}; since{" "}
                    {moment(topic.policy.changed_at).slice(0, 16)} UTC by {topic.policy.by}
                  </span>
                )}
              </Figure>
              <Figure term="Stored">
                {size(BigInt(topic.live_bytes))}
                <span className="hr-exact">{count(BigInt(topic.live_records))} records</span>
              </Figure>
              <Figure term="Oldest record">
                {topic.oldest_at ? `${moment(topic.oldest_at).slice(0, 16)} UTC` : "none"}
              </Figure>
            </dl>
            <Deleted topic={topic} />
            {topic.history.length > 1 && <History topic={topic} />}
          </CardBody>
        </Card>
      ))}
    </div>
  );
}

function Figure({ term, children }: { term: string; children: React.ReactNode }) {
  return (
    <div className="hr-figure hr-words">
      <dt>{term}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function Deleted({ topic }: { topic: TopicReport }) {
  if (topic.deleted.length === 0) return <p className="hr-note">Nothing of it was deleted yet.</p>;
  return (
    <Table aria-label={`What was deleted of ${topic.topic}`} variant="compact" className="hr-panel">
      <Thead>
        <Tr>
          <Th>Cause</Th>
          <Th className="hr-number">Deletions</Th>
          <Th className="hr-number">Bytes</Th>
          <Th className="hr-number">Records</Th>
          <Th className="hr-number" modifier="wrap">
            Age when deleted: least, median, most
          </Th>
        </Tr>
      </Thead>
      <Tbody>
        {topic.deleted.map((each) => (
          <Tr key={each.cause}>
            <Td dataLabel="Cause">{causeTitle(each.cause)}</Td>
            <Td dataLabel="Deletions" className="hr-number">
              {count(BigInt(each.trims))}
            </Td>
            <Td dataLabel="Bytes" className="hr-number">
              {size(BigInt(each.bytes))}
            </Td>
            <Td dataLabel="Records" className="hr-number">
              {count(BigInt(each.records))}
            </Td>
            <Td dataLabel="Age when deleted" className="hr-number">
              {[each.age_min_ms, each.age_p50_ms, each.age_max_ms].map(age).join(", ")}
            </Td>
          </Tr>
        ))}
      </Tbody>
    </Table>
  );
}

function History({ topic }: { topic: TopicReport }) {
  return (
    <ExpandableSection toggleText={`Its ${topic.history.length} policies so far`}>
      <ul>
        {topic.history.toReversed().map((policy) => (
          <li key={policy.generation}>
            {moment(policy.changed_at).slice(0, 19)} UTC: {limits(policy)}, by {policy.by}
          </li>
        ))}
      </ul>
    </ExpandableSection>
  );
}
