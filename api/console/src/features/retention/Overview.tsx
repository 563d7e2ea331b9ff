// How old what is there is, what went and why, and what goes next: three charts, one table.

import { Card, CardBody, CardTitle } from "@patternfly/react-core";
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { sum } from "../../lib/decimal";
import { count, size } from "../../lib/format";
import { stack } from "../../lib/stacks";
import { StackedBars } from "../../ui/charts/StackedBars";
import {
  ageBuckets,
  ageParts,
  ageTitle,
  CAUSES,
  causeTitle,
  comingDays,
  type Day,
  deletedParts,
  dueParts,
  HORIZONS,
  pastDays,
  type Summary,
  type TopicReport,
} from "./report";

export const bytes = (text: string) => size(BigInt(text));
const axis = (amount: number) => size(Math.round(amount));

/** `topics`: the largest, by name; `summary` is of all. */
type Props = { topics: TopicReport[]; summary: Summary; days: Day[]; asOf: string };

export function Overview({ topics, summary, days, asOf }: Props) {
  const ages = useMemo(() => {
    const buckets = ageBuckets(summary);
    return { buckets, ...stack(ageParts(topics, summary), buckets, bytes) };
  }, [topics, summary]);
  const gone = useMemo(() => {
    const buckets = pastDays(asOf);
    return { buckets, ...stack(deletedParts(days), buckets, bytes, CAUSES.map(causeTitle)) };
  }, [days, asOf]);
  const due = useMemo(() => {
    const buckets = comingDays(asOf);
    // A topic has one colour on the whole page.
    const order = ages.series.map((each) => each.name);
    return { buckets, ...stack(dueParts(topics, summary, asOf), buckets, bytes, order) };
  }, [topics, summary, asOf, ages]);
  return (
    <div className="hr-stack hr-panel">
      <Figures summary={summary} />
      <StackedBars
        title="What is there, by age"
        of="Age of the records"
        {...ages}
        buckets={ages.buckets.map(ageTitle)}
        steps="binary"
        format={axis}
      />
      <div className="hr-grid">
        <StackedBars
          title="What was deleted"
          of="Day (UTC)"
          {...gone}
          steps="binary"
          format={axis}
        />
        <StackedBars title="What goes next" of="Day (UTC)" {...due} steps="binary" format={axis} />
      </div>
      <Upcoming topics={topics} of={summary.topics} />
    </div>
  );
}

function Figures({ summary }: { summary: Summary }) {
  const deleted = (name: "bytes" | "records") => sum(summary.deleted.map((each) => each[name]));
  const violations = Object.values(summary.violations).reduce((total, each) => total + each, 0);
  const due = summary.upcoming.find((each) => each.within === "24h");
  const figures: [string, string, string?][] = [
    ["Stored", bytes(summary.live_bytes)],
    ["Deleted", bytes(deleted("bytes")), `${count(BigInt(deleted("records")))} records`],
    ["Due in 24 hours", due ? bytes(due.bytes) : "unknown"],
    ["Kept by holds alone", bytes(summary.hold_blocked_bytes)],
  ];
  return (
    <dl className="hr-figures">
      {figures.map(([term, value, more]) => (
        <div className="hr-figure" key={term}>
          <dt>{term}</dt>
          <dd>
            {value}
            {more && <span className="hr-exact">{more}</span>}
          </dd>
        </div>
      ))}
      <div className="hr-figure">
        <dt>Violations</dt>
        <dd>
          <Link to="/retention" search={{ tab: "violations" }}>
            {violations}
          </Link>
        </dd>
      </div>
    </dl>
  );
}

function Upcoming({ topics, of }: { topics: TopicReport[]; of: number }) {
  const lasting = topics.filter((topic) => topic.exists);
  return (
    <Card component="section" aria-label="What policies take">
      <CardTitle component="h2">What policies take, from each topic</CardTitle>
      <CardBody>
        <Table aria-label="What policies take, from each topic" variant="compact">
          <Thead>
            <Tr>
              <Th width={30}>Topic</Th>
              <Th className="hr-number">Stored</Th>
              {HORIZONS.map(([name, title]) => (
                <Th key={name} className="hr-number">
                  {title}
                </Th>
              ))}
            </Tr>
          </Thead>
          <Tbody>
            {lasting.map((topic) => (
              <Tr key={topic.topic_id}>
                <Td dataLabel="Topic" modifier="breakWord">
                  <Link to="/topics/$topicId" params={{ topicId: topic.topic_id }}>
                    {topic.topic}
                  </Link>
                </Td>
                <Td dataLabel="Stored" className="hr-number">
                  {bytes(topic.live_bytes)}
                </Td>
                {HORIZONS.map(([name, title]) => (
                  <Td key={name} dataLabel={title} className="hr-number">
                    {topic.upcoming[name] ? bytes(topic.upcoming[name].bytes) : "unknown"}
                  </Td>
                ))}
              </Tr>
            ))}
          </Tbody>
        </Table>
        {of > topics.length && (
          <p className="hr-note">
            The {topics.length} largest of {of} topics; the CSV holds them all.
          </p>
        )}
      </CardBody>
    </Card>
  );
}
