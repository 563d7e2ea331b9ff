// The nodes of every cluster, and their responses now. For operators of the service.

import { useQuery } from "@tanstack/react-query";
import { all, type Cluster, type Node } from "../../lib/client";
import { ago, known, moment } from "../../lib/format";
import { curl, python } from "../../lib/recipe";
import type { Column } from "../../ui/DataTable";
import { Empty } from "../../ui/Empty";
import { List } from "../../ui/List";
import { ListPage } from "../../ui/ListPage";
import { ObjectState } from "../../ui/ObjectState";

type Row = { cluster: Cluster; node: Node };

async function everyNode(): Promise<Row[]> {
  const clusters = await all<Cluster>("/v1/clusters");
  const lists = clusters.map(async (cluster) => {
    const found = await all<Node>(`/v1/clusters/${cluster.id}/nodes?live=true`);
    return found.map((node) => ({ cluster, node }));
  });
  return (await Promise.all(lists)).flat();
}

const COLUMNS: Column<Row>[] = [
  {
    title: "Node",
    cell: ({ cluster, node }) => (
      <>
        {cluster.name}/{node.name}
        <div className="hr-muted hr-mono">{node.id}</div>
        <div className="hr-muted hr-mono">{node.spec.address}</div>
      </>
    ),
  },
  { title: "State", wrap: "never", cell: (row) => <NodeState {...row} /> },
  { title: "Version", cell: ({ node }) => node.status.said?.version ?? "unknown" },
  { title: "Shards", isNumber: true, cell: ({ node }) => known(node.status.said?.shards) },
  {
    title: "Uptime",
    cell: ({ node: { status } }) =>
      status.said ? (
        <span title={`since ${moment(status.said.started_at)} UTC`}>
          {ago(status.said.started_at)}
        </span>
      ) : (
        "unknown"
      ),
  },
  {
    title: "Last response (UTC)",
    cell: ({ node: { status } }) =>
      status.said
        ? `${status.said.answered_at.slice(11, 19)}, in ${status.said.answer_ms} ms`
        : "no response",
  },
];

export function Nodes() {
  const nodes = useQuery({ queryKey: ["nodes"], queryFn: everyNode, refetchInterval: 5000 });
  const first = nodes.data?.[0]?.cluster.id ?? "CLUSTER";
  const recipe = {
    cli: "headrace node list",
    curl: curl("GET", `/v1/clusters/${first}/nodes?live=true`),
    python: python('print(b.admin.objects("node"))'),
  };
  return (
    <ListPage
      title="Nodes"
      about="Nodes store and serve partitions. Each node is polled every few seconds."
      recipe={recipe}
    >
      <List
        label="Nodes"
        noun="node"
        query={nodes}
        items={nodes.data ?? []}
        columns={COLUMNS}
        keyOf={({ node }) => node.id}
        empty={
          <Empty
            title="No nodes yet"
            body="The first node is registered when the service starts."
          />
        }
      />
    </ListPage>
  );
}

function NodeState({ cluster, node }: Row) {
  const conditions = node.status.conditions ?? [];
  const reachable = conditions[0];
  return (
    <>
      <ObjectState
        shown={{ id: node.id, status: { conditions } }}
        name={`${cluster.name}/${node.name}`}
      />
      {reachable?.message && <div className="hr-muted">{reachable.message}</div>}
    </>
  );
}
