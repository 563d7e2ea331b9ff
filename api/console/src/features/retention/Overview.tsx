// Stored data by age, what was deleted and why, and upcoming deletions: three charts, one table.

import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { sum } from "../../lib/decimal";
import { count, size } from "../../lib/format";
import { stack } from "../../lib/stacks";
import { StackedBars } from "../../ui/charts/StackedBars";
import { type Column, DataTable } from "../../ui/DataTable";
import { Figure, Figures } from "../../ui/Figures";
import { Section } from "../../ui/Section";
import { TopicLink } from "../../ui/TopicLink";
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
      <Sums summary={summary} />
      <StackedBars
        title="Stored data by age"
        of="Record age"
        {...ages}
        buckets={ages.buckets.map(ageTitle)}
        steps="binary"
        format={axis}
      />
      <div className="hr-grid">
        <StackedBars title="Deleted data" of="Day (UTC)" {...gone} steps="binary" format={axis} />
        <StackedBars
          title="Upcoming deletions"
          of="Day (UTC)"
          {...due}
          steps="binary"
          format={axis}
        />
      </div>
      <Upcoming topics={topics} of={summary.topics} />
    </div>
  );
}

function Sums({ summary }: { summary: Summary }) {
  const deleted = (name: "bytes" | "records") => sum(summary.deleted.map((each) => each[name]));
  const violations = Object.values(summary.violations).reduce((total, each) => total + each, 0);
  const due = summary.upcoming.find((each) => each.within === "24h");
  return (
    <Figures>
      <Figure term="Stored">{bytes(summary.live_bytes)}</Figure>
      <Figure term="Deleted" note={`${count(BigInt(deleted("records")))} records`}>
        {bytes(deleted("bytes"))}
      </Figure>
      <Figure term="Due within 24 hours">{due ? bytes(due.bytes) : "unknown"}</Figure>
      <Figure term="Kept only by legal holds">{bytes(summary.hold_blocked_bytes)}</Figure>
      <Figure term="Violations">
        <Link to="/retention" search={{ tab: "violations" }}>
          {violations}
        </Link>
      </Figure>
    </Figures>
  );
}

const COLUMNS: Column<TopicReport>[] = [
  {
    title: "Topic",
    width: 30,
    wrap: "anywhere",
    cell: (topic) => <TopicLink id={topic.topic_id} name={topic.topic} />,
  },
  { title: "Stored", isNumber: true, cell: (topic) => bytes(topic.live_bytes) },
  ...HORIZONS.map(
    ([name, title]): Column<TopicReport> => ({
      title,
      isNumber: true,
      cell: (topic) => (topic.upcoming[name] ? bytes(topic.upcoming[name].bytes) : "unknown"),
    }),
  ),
];

function Upcoming({ topics, of }: { topics: TopicReport[]; of: number }) {
  const title = "Upcoming deletions by topic";
  return (
    <Section title={title}>
      <DataTable
        label={title}
        columns={COLUMNS}
        rows={topics.filter((topic) => topic.exists)}
        keyOf={(topic) => topic.topic_id}
        isCompact
      />
      {of > topics.length && (
        <p className="hr-note">
          Showing the {topics.length} largest of {of} topics. The CSV has all of them.
        </p>
      )}
    </Section>
  );
}
