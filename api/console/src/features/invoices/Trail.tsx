// From a line down: which topics, which days and hours, and for ingress which offsets of which log.

import { Button } from "@patternfly/react-core";
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { Link } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { grouped, money, trimmed } from "../../lib/decimal";
import { bucketTitle, count, moment, size } from "../../lib/format";
import { METERS, shown } from "../../lib/meters";
import { stack } from "../../lib/stacks";
import { StackedBars } from "../../ui/charts/StackedBars";
import type { HourShare, Line, OffsetRange, TopicShare, Trail } from "./invoice";

const RANGES_MAX = 200;

export function LineTrail({ line, trail }: { line: Line; trail: Trail }) {
  const { topics } = line;
  const { hours = [], partitions = [] } = trail;
  if (topics.length + hours.length + partitions.length === 0) {
    return (
      <p className="hr-note">
        This line stands for itself: nothing was metered for it. It tops the others up to the
        minimum of the price book.
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

function Topics({ line, topics }: { line: Line; topics: TopicShare[] }) {
  return (
    <Table aria-label={`${line.description}, by topic`} variant="compact">
      <Thead>
        <Tr>
          <Th width={40}>Topic</Th>
          <Th className="hr-number">Quantity</Th>
          <Th className="hr-number">Exactly</Th>
          <Th className="hr-number">Its part of the line</Th>
        </Tr>
      </Thead>
      <Tbody>
        {topics.map((topic) => (
          <Tr key={topic.topic_id}>
            <Td dataLabel="Topic" modifier="breakWord">
              <Link to="/topics/$topicId" params={{ topicId: topic.topic_id }}>
                {topic.topic}
              </Link>
            </Td>
            <Td dataLabel="Quantity" className="hr-number">
              {shown(line.sku, topic.quantity, line.unit)}
            </Td>
            <Td dataLabel="Exactly" className="hr-number">
              {grouped(trimmed(topic.amount_exact))}
            </Td>
            <Td dataLabel="Its part of the line" className="hr-number">
              {money(topic.amount, line.currency)}
            </Td>
          </Tr>
        ))}
      </Tbody>
    </Table>
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
  if (!first || !end) return "removed by retention since";
  return `${count(BigInt(first))} to ${count(BigInt(end) - 1n)}`;
}

function Offsets({ ranges, topics }: { ranges: OffsetRange[]; topics: TopicShare[] }) {
  const names = new Map(topics.map((topic) => [topic.topic_id, topic.topic]));
  return (
    <>
      <Table aria-label="Where in the logs it lies" variant="compact">
        <Thead>
          <Tr>
            <Th modifier="nowrap">Hour (UTC)</Th>
            <Th width={25}>Topic</Th>
            <Th className="hr-number" modifier="nowrap">
              Partition
            </Th>
            <Th className="hr-number">Offsets</Th>
            <Th className="hr-number" modifier="nowrap">
              Records
            </Th>
            <Th className="hr-number">Bytes</Th>
          </Tr>
        </Thead>
        <Tbody>
          {ranges.slice(0, RANGES_MAX).map((range) => (
            <Tr key={`${range.topic_id}/${range.partition}/${range.hour_us}`}>
              <Td dataLabel="Hour (UTC)" className="hr-nowrap">
                {moment(new Date(Number(range.hour_us) / 1000).toISOString()).slice(0, 16)}
              </Td>
              <Td dataLabel="Topic" modifier="breakWord">
                {names.get(range.topic_id) ?? range.topic_id}
              </Td>
              <Td dataLabel="Partition" className="hr-number">
                {range.partition}
              </Td>
              <Td dataLabel="Offsets" className="hr-number">
                {offsetsOf(range)}
              </Td>
              <Td dataLabel="Records" className="hr-number">
                {count(BigInt(range.records))}
              </Td>
              <Td dataLabel="Bytes" className="hr-number hr-nowrap">
                {size(BigInt(range.bytes))}
              </Td>
            </Tr>
          ))}
        </Tbody>
      </Table>
      {ranges.length > RANGES_MAX && (
        <p className="hr-note">
          The first {RANGES_MAX} of {ranges.length} hours; the JSON of the invoice holds them all.
        </p>
      )}
    </>
  );
}
