import { Card, CardBody, CardTitle } from "@patternfly/react-core";
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { Link } from "@tanstack/react-router";
import { money } from "../../lib/decimal";
import { meterTitle, shown } from "../../lib/meters";
import type { TopicSum, Usage } from "./sums";

const TOPICS_MAX = 100;

/** What each meter counted in the time that is shown, and what that costs. */
export function MeterTable({ usage }: { usage: Usage }) {
  return (
    <Card component="section" aria-label="By meter">
      <CardTitle component="h2">By meter</CardTitle>
      <CardBody>
        <Table aria-label="By meter" variant="compact">
          <Thead>
            <Tr>
              <Th>Meter</Th>
              <Th className="hr-number">Quantity</Th>
              <Th className="hr-number">Cost</Th>
            </Tr>
          </Thead>
          <Tbody>
            {usage.totals.map((each) => (
              <Tr key={each.meter + each.cost.currency}>
                <Td dataLabel="Meter">{meterTitle(each.meter)}</Td>
                <Td dataLabel="Quantity" className="hr-number">
                  <span title={`${each.quantity} ${each.unit}`}>
                    {shown(each.meter, each.quantity, each.unit)}
                  </span>
                </Td>
                <Td dataLabel="Cost" className="hr-number">
                  {money(each.cost.amount, each.cost.currency)}
                </Td>
              </Tr>
            ))}
          </Tbody>
        </Table>
      </CardBody>
    </Card>
  );
}

/** Every topic of the time that is shown, the dearest first. */
export function TopicTable({ topics, currency }: { topics: TopicSum[]; currency: string }) {
  const part = topics.slice(0, TOPICS_MAX);
  return (
    <Card component="section" aria-label="By topic">
      <CardTitle component="h2">By topic</CardTitle>
      <CardBody>
        <Table aria-label="By topic" variant="compact">
          <Thead>
            <Tr>
              <Th width={40}>Topic</Th>
              <Th className="hr-number">Ingress</Th>
              <Th className="hr-number">Cost</Th>
            </Tr>
          </Thead>
          <Tbody>
            {part.map((topic) => {
              const ingress = topic.used.get("ingress_bytes");
              return (
                <Tr key={topic.id}>
                  <Td dataLabel="Topic" modifier="breakWord">
                    <Link to="/topics/$topicId" params={{ topicId: topic.id }}>
                      {topic.name}
                    </Link>
                  </Td>
                  <Td dataLabel="Ingress" className="hr-number">
                    {ingress ? shown(ingress.meter, ingress.quantity, ingress.unit) : "–"}
                  </Td>
                  <Td dataLabel="Cost" className="hr-number">
                    {money(topic.cost, currency)}
                  </Td>
                </Tr>
              );
            })}
          </Tbody>
        </Table>
        {part.length < topics.length && (
          <p className="hr-note">
            The dearest {part.length} of {topics.length}; the CSV holds them all.
          </p>
        )}
      </CardBody>
    </Card>
  );
}
