// Violations of retention rules: which rule, and where.

import { Label } from "@patternfly/react-core";
import { type Column, DataTable } from "../../ui/DataTable";
import { Empty } from "../../ui/Empty";
import { TopicLink } from "../../ui/TopicLink";
import { RULES, type TopicReport, type Violation } from "./report";

const SHOWN_MAX = 500;

type Row = Violation & { topic: TopicReport };

const COLUMNS: Column<Row>[] = [
  { title: "Rule", cell: (each) => <Label status="danger">{wordsOf(each.code)}</Label> },
  {
    title: "Topic",
    width: 25,
    wrap: "anywhere",
    cell: ({ topic }) => <TopicLink id={topic.topic_id} name={topic.topic} />,
  },
  { title: "Partition", isNumber: true, cell: (each) => each.partition },
  { title: "Group", wrap: "anywhere", cell: (each) => each.group ?? "–" },
  { title: "Finding", width: 40, wrap: "anywhere", cell: (each) => each.detail },
];

export function Violations({ topics }: { topics: TopicReport[] }) {
  const found = topics.flatMap((topic) =>
    topic.violations.map((each): Row => ({ ...each, topic })),
  );
  if (found.length === 0) {
    return (
      <Empty
        title="No violations"
        body="No data is kept longer than its policy allows (plus one segment) and none was deleted too early. All nodes apply the configured policies, and no consumer group has lost or is about to lose unread records."
      />
    );
  }
  const broken = [...new Set(found.map((each) => each.code))].sort();
  return (
    <div className="hr-stack hr-panel">
      <DataTable
        label="Violations"
        columns={COLUMNS}
        rows={found.slice(0, SHOWN_MAX)}
        // One partition may break a rule twice.
        keyOf={(_, index) => index}
      />
      {found.length > SHOWN_MAX && (
        <p className="hr-muted">
          Showing {SHOWN_MAX} of {found.length} violations in these topics. The CSV has all of them.
        </p>
      )}
      <dl className="hr-rules">
        {broken.map((code) => (
          <div key={code}>
            <dt>{wordsOf(code)}</dt>
            <dd className="hr-muted">{RULES[code] ?? code}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}

/** "Over retained" for OVER_RETAINED. */
function wordsOf(code: string): string {
  const words = code.replaceAll("_", " ").toLowerCase();
  return words[0].toUpperCase() + words.slice(1);
}
