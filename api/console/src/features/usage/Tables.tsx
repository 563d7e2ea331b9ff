import { money } from "../../lib/decimal";
import { meterTitle, shown } from "../../lib/meters";
import { type Column, DataTable } from "../../ui/DataTable";
import { Section } from "../../ui/Section";
import { TopicLink } from "../../ui/TopicLink";
import type { TopicSum, Usage } from "./sums";

const TOPICS_MAX = 100;

const METER_COLUMNS: Column<Usage["totals"][number]>[] = [
  { title: "Meter", cell: (each) => meterTitle(each.meter) },
  {
    title: "Quantity",
    isNumber: true,
    cell: (each) => (
      <span title={`${each.quantity} ${each.unit}`}>
        {shown(each.meter, each.quantity, each.unit)}
      </span>
    ),
  },
  {
    title: "Cost",
    isNumber: true,
    cell: (each) => money(each.cost.amount, each.cost.currency),
  },
];

/** What each meter counted in the time that is shown, and what that costs. */
export function MeterTable({ usage }: { usage: Usage }) {
  return (
    <Section title="By meter">
      <DataTable
        label="By meter"
        columns={METER_COLUMNS}
        rows={usage.totals}
        keyOf={(each) => each.meter + each.cost.currency}
        isCompact
      />
    </Section>
  );
}

function topicColumns(currency: string): Column<TopicSum>[] {
  return [
    {
      title: "Topic",
      width: 40,
      wrap: "anywhere",
      cell: (topic) => <TopicLink id={topic.id} name={topic.name} />,
    },
    {
      title: "Ingress",
      isNumber: true,
      cell: ({ used }) => {
        const ingress = used.get("ingress_bytes");
        return ingress ? shown(ingress.meter, ingress.quantity, ingress.unit) : "–";
      },
    },
    { title: "Cost", isNumber: true, cell: (topic) => money(topic.cost, currency) },
  ];
}

/** Every topic of the time that is shown, the most expensive first. */
export function TopicTable({ topics, currency }: { topics: TopicSum[]; currency: string }) {
  const part = topics.slice(0, TOPICS_MAX);
  return (
    <Section title="By topic">
      <DataTable
        label="By topic"
        columns={topicColumns(currency)}
        rows={part}
        keyOf={(topic) => topic.id}
        isCompact
      />
      {part.length < topics.length && (
        <p className="hr-note">
          Showing the {part.length} most expensive of {topics.length} topics. The CSV has all of
          them.
        </p>
      )}
    </Section>
  );
}
