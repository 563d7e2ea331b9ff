// From a line down: which topics, which days and hours, and for ingress which offsets of which log.

import { Button } from "@patternfly/react-core";
import { useMemo, useState } from "react";
import { grouped, money, trimmed } from "../../lib/decimal";
import { bucketTitle, count, moment, size } from "../../lib/format";
import { METERS, shown } from "../../lib/meters";
import { stack } from "../../lib/stacks";
import { StackedBars } from "../../ui/charts/StackedBars";
import { type Column, DataTable } from "../../ui/DataTable";
import { TopicLink } from "../../ui/TopicLink";
import type { HourShare, Line, OffsetRange, TopicShare, Trail } from "./invoice";

const RANGES_MAX = 200;

export function LineTrail({ line, trail }: { line: Line; trail: Trail }) {
  const { topics } = line;
  const { hours = [], partitions = [] } = trail;
  if (topics.length + hours.length + partitions.length === 0) {
    return (
      <p className="hr-note">
        This line is not metered. It raises the total to the monthly minimum of the price book.
      </p>
    );
  }
  return (
    <div className="hr-stack hr-panel">
      {topics.length > 0 && <Topics line={line} topics={topics} />}
      {hours.length > 0 && <Hours line={line} hours={hours} topics={topics} />}
      {partitions.length > 0 && <Offsets ranges={partitions} topics={topics} />}
    </div>
  );
}

function topicColumns(line: Line): Column<TopicShare>[] {
  return [
    {
      title: "Topic",
      width: 40,
      wrap: "anywhere",
      cell: (topic) => <TopicLink id={topic.topic_id} name={topic.topic} />,
    },
    {
      title: "Quantity",
      isNumber: true,
      cell: (topic) => shown(line.sku, topic.quantity, line.unit),
    },
    {
      title: "Exact amount",
      isNumber: true,
      cell: (topic) => grouped(trimmed(topic.amount_exact)),
    },
    {
      title: "Amount",
      isNumber: true,
      cell: (topic) => money(topic.amount, line.currency),
    },
  ];
}

function Topics({ line, topics }: { line: Line; topics: TopicShare[] }) {
  return (
    <DataTable
      label={`${line.description}, by topic`}
      columns={topicColumns(line)}
      rows={topics}
      keyOf={(topic) => topic.topic_id}
      isCompact
    />
  );
}

type HoursProps = { line: Line; hours: HourShare[]; topics: TopicShare[] };

/** Days; the hours of one once it is chosen. */
function Hours({ line, hours, topics }: HoursProps) {
  const [day, setDay] = useState<string | null>(null);
  const drawn = useMemo(() => {
    const names = new Map(topics.map((topic) => [topic.topic_id, topic.topic]));
    const chosen = hours.filter((share) => day === null || share.hour.startsWith(day));
    const parts = chosen.map((share) => ({
      bucket: day === null ? share.hour.slice(0, 10) : share.hour,
      name: names.get(share.topic_id) ?? share.topic_id,
      value: share.quantity,
    }));
    const buckets = [...new Set(parts.map((part) => part.bucket))].sort();
    const text = (value: string) => shown(line.sku, value, line.unit);
    return { buckets, ...stack(parts, buckets, text) };
  }, [hours, topics, day, line]);
  const meter = METERS[line.sku];
  return (
    <StackedBars
      title={`${meter?.title ?? line.sku} ${day === null ? "per day" : `on ${day}`}`}
      of={day === null ? "Day (UTC)" : "Hour (UTC)"}
      {...drawn}
      buckets={drawn.buckets.map(bucketTitle)}
      steps={meter?.steps ?? "decimal"}
      format={(amount) => shown(line.sku, String(Math.round(amount)), line.unit)}
      onPick={day === null ? (index) => setDay(drawn.buckets[index] ?? null) : undefined}
    >
      {day !== null && (
        <Button variant="link" onClick={() => setDay(null)}>
          All days
        </Button>
      )}
    </StackedBars>
  );
}

/** "1,200 to 1,299": the offsets of an hour, as far as the log holds them still. */
function offsetsOf({ first_offset: first, end_offset: end }: OffsetRange): string {
  if (!first || !end) return "deleted by retention";
  return `${count(BigInt(first))} to ${count(BigInt(end) - 1n)}`;
}

/** `names`: of the topics, by id. */
function offsetColumns(names: Map<string, string>): Column<OffsetRange>[] {
  return [
    {
      title: "Hour (UTC)",
      wrap: "never",
      cell: (range) => moment(new Date(Number(range.hour_us) / 1000).toISOString()).slice(0, 16),
    },
    {
      title: "Topic",
      width: 25,
      wrap: "anywhere",
      cell: (range) => names.get(range.topic_id) ?? range.topic_id,
    },
    { title: "Partition", isNumber: true, cell: (range) => range.partition },
    { title: "Offsets", isNumber: true, cell: offsetsOf },
    { title: "Records", isNumber: true, cell: (range) => count(BigInt(range.records)) },
    {
      title: "Bytes",
      isNumber: true,
      wrap: "never",
      cell: (range) => size(BigInt(range.bytes)),
    },
  ];
}

function Offsets({ ranges, topics }: { ranges: OffsetRange[]; topics: TopicShare[] }) {
  const names = new Map(topics.map((topic) => [topic.topic_id, topic.topic]));
  return (
    <>
      <DataTable
        label="Log offsets"
        columns={offsetColumns(names)}
        rows={ranges.slice(0, RANGES_MAX)}
        keyOf={(range) => `${range.topic_id}/${range.partition}/${range.hour_us}`}
        isCompact
      />
      {ranges.length > RANGES_MAX && (
        <p className="hr-note">
          Showing {RANGES_MAX} of {ranges.length} hours. The invoice JSON has all of them.
        </p>
      )}
    </>
  );
}
