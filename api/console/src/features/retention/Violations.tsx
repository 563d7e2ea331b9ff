// Promises that are broken: which, where, and the rule that says so.

import { EmptyState, EmptyStateBody, Label } from "@patternfly/react-core";
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { Link } from "@tanstack/react-router";
import { RULES, type TopicReport } from "./report";

const SHOWN_MAX = 500;

export function Violations({ topics }: { topics: TopicReport[] }) {
  const found = topics.flatMap((topic) => topic.violations.map((each) => ({ topic, ...each })));
  if (found.length === 0) {
    return (
      <EmptyState titleText="Every promise is kept" headingLevel="h2">
        <EmptyStateBody>
          Nothing stays longer than its policy and one segment, nothing went too soon, nodes keep
          what the control plane wishes, and no reader has lost or is about to lose unread records.
        </EmptyStateBody>
      </EmptyState>
    );
  }
  const broken = [...new Set(found.map((each) => each.code))].sort();
  return (
    <div className="hr-stack hr-panel">
      <Table aria-label="Violations">
        <Thead>
          <Tr>
            <Th>Rule</Th>
            <Th width={25}>Topic</Th>
            <Th className="hr-number" modifier="nowrap">
              Partition
            </Th>
            <Th>Group</Th>
            <Th width={40}>What was found</Th>
          </Tr>
        </Thead>
        <Tbody>
          {found.slice(0, SHOWN_MAX).map((each, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: one partition may break a rule twice.
            <Tr key={index}>
              <Td dataLabel="Rule">
                <Label status="danger">{wordsOf(each.code)}</Label>
              </Td>
              <Td dataLabel="Topic" modifier="breakWord">
                <Link to="/topics/$topicId" params={{ topicId: each.topic.topic_id }}>
                  {each.topic.topic}
                </Link>
              </Td>
              <Td dataLabel="Partition" className="hr-number">
                {each.partition}
              </Td>
              <Td dataLabel="Group" modifier="breakWord">
                {each.group ?? "–"}
              </Td>
              <Td dataLabel="What was found" modifier="breakWord">
                {each.detail}
              </Td>
            </Tr>
          ))}
        </Tbody>
      </Table>
      {found.length > SHOWN_MAX && (
        <p className="hr-muted">
          The first {SHOWN_MAX} of {found.length} of these topics; the CSV holds them all.
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
