// The nodes of every cluster, as they answer now. For whoever runs the service.

import {
  EmptyState,
  EmptyStateBody,
  PageSection,
  Spinner,
  Title,
  Toolbar,
  ToolbarContent,
  ToolbarItem,
} from "@patternfly/react-core";
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { useQuery } from "@tanstack/react-query";
import { all, type Cluster, type Node } from "../../lib/client";
import { ago, known, moment } from "../../lib/format";
import { curl, python } from "../../lib/recipe";
import { CopyAs } from "../../ui/CopyAs";
import { Problem } from "../../ui/Problem";
import { Why } from "../../ui/Why";

type Row = { cluster: Cluster; node: Node };

async function everyNode(): Promise<Row[]> {
  const clusters = await all<Cluster>("/v1/clusters");
  const lists = clusters.map(async (cluster) => {
    const found = await all<Node>(`/v1/clusters/${cluster.id}/nodes?live=true`);
    return found.map((node) => ({ cluster, node }));
  });
  return (await Promise.all(lists)).flat();
}

export function Nodes() {
  const nodes = useQuery({ queryKey: ["nodes"], queryFn: everyNode, refetchInterval: 5000 });
  const first = nodes.data?.[0]?.cluster.id ?? "CLUSTER";
  const recipe = {
    cli: "headrace node list",
    curl: curl("GET", `/v1/clusters/${first}/nodes?live=true`),
    python: python('print(b.admin.objects("node"))'),
  };
  return (
    <PageSection>
      <Toolbar>
        <ToolbarContent alignItems="center">
          <ToolbarItem>
            <Title headingLevel="h1">Nodes</Title>
          </ToolbarItem>
          <ToolbarItem align={{ default: "alignEnd" }}>
            <CopyAs recipe={recipe} />
          </ToolbarItem>
        </ToolbarContent>
      </Toolbar>
      <p className="hr-muted">
        A node stores partitions and serves them. Each is asked every few seconds, for a second at
        most.
      </p>
      {nodes.isPending && <Spinner aria-label="Loading" />}
      {nodes.isError && <Problem error={nodes.error} />}
      {nodes.data?.length === 0 && (
        <EmptyState titleText="No nodes yet" headingLevel="h2">
          <EmptyStateBody>`headrace up` registers the first one when it starts.</EmptyStateBody>
        </EmptyState>
      )}
      {nodes.data && nodes.data.length > 0 && <List rows={nodes.data} />}
    </PageSection>
  );
}

function List({ rows }: { rows: Row[] }) {
  return (
    <Table aria-label="Nodes">
      <Thead>
        <Tr>
          <Th modifier="nowrap">Node</Th>
          <Th modifier="nowrap">State</Th>
          <Th modifier="nowrap">Version</Th>
          <Th modifier="nowrap" className="hr-number">
            Shards
          </Th>
          <Th modifier="nowrap">Runs for</Th>
          <Th modifier="nowrap">Last heard (UTC)</Th>
        </Tr>
      </Thead>
      <Tbody>
        {rows.map(({ cluster, node }) => {
          const said = node.status.said;
          const name = `${cluster.name}/${node.name}`;
          const reachable = node.status.conditions?.[0];
          return (
            <Tr key={node.id}>
              <Td dataLabel="Node">
                {name}
                <div className="hr-muted hr-mono">{node.id}</div>
                <div className="hr-muted hr-mono">{node.spec.address}</div>
              </Td>
              <Td dataLabel="State" modifier="nowrap">
                <Why
                  shown={{ id: node.id, status: { conditions: node.status.conditions ?? [] } }}
                  name={name}
                />
                {reachable?.message && <div className="hr-muted">{reachable.message}</div>}
              </Td>
              <Td dataLabel="Version">{said?.version ?? "unknown"}</Td>
              <Td dataLabel="Shards" className="hr-number">
                {known(said?.shards)}
              </Td>
              <Td dataLabel="Runs for">
                {said ? (
                  <span title={`since ${moment(said.started_at)} UTC`}>{ago(said.started_at)}</span>
                ) : (
                  "unknown"
                )}
              </Td>
              <Td dataLabel="Last heard (UTC)">
                {said
                  ? `${said.answered_at.slice(11, 19)}, in ${said.answer_ms} ms`
                  : "does not answer"}
              </Td>
            </Tr>
          );
        })}
      </Tbody>
    </Table>
  );
}
