// The groups, and how far behind each one is.

import { Link } from "@tanstack/react-router";
import { useFilter } from "../../hooks/useFilter";
import { usePages } from "../../hooks/usePages";
import type { Group } from "../../lib/client";
import { known } from "../../lib/format";
import { curl, python } from "../../lib/recipe";
import { Snippet } from "../../ui/CopyAs";
import type { Column } from "../../ui/DataTable";
import { Empty } from "../../ui/Empty";
import { List } from "../../ui/List";
import { ListPage } from "../../ui/ListPage";
import { SearchBox } from "../../ui/SearchBox";
import { GroupState } from "./GroupState";

const PATH = "/v1/groups?lag=true&page_size=200";

const RECIPE = {
  cli: "headrace group list",
  curl: curl("GET", PATH),
  python: python("print(b.list_groups(lag=True))"),
};

const COLUMNS: Column<Group>[] = [
  {
    title: "Group",
    width: 25,
    cell: (group) => (
      <Link to="/groups/$name" params={{ name: group.name }} search={{ project: group.project_id }}>
        {group.name}
      </Link>
    ),
  },
  { title: "State", cell: (group) => <GroupState state={group.state} name={group.name} /> },
  { title: "Members", isNumber: true, cell: (group) => group.members },
  { title: "Partitions", isNumber: true, cell: (group) => group.partitions },
  { title: "Lag (records)", isNumber: true, cell: (group) => known(group.lag) },
  { title: "Topics", cell: (group) => group.topics.join(", ") || "–" },
];

export function Groups() {
  const groups = usePages<Group>(["groups"], PATH, 5000);
  const filter = useFilter(groups.items, ({ name, topics }) => `${name} ${topics.join(" ")}`);
  return (
    <ListPage
      title="Consumer groups"
      tools={<SearchBox label="Search groups" filter={filter} />}
      about="A consumer group divides the partitions of its topics among its members and tracks how far each partition has been read."
      recipe={RECIPE}
    >
      <List
        label="Groups"
        noun="group"
        query={groups}
        items={groups.items}
        filter={filter}
        columns={COLUMNS}
        keyOf={(group) => `${group.cluster_id}/${group.project_id}/${group.name}`}
        pages={groups}
        note=". Without active consumers, the lag covers every topic with committed offsets."
        empty={<NoGroups />}
      />
    </ListPage>
  );
}

function NoGroups() {
  return (
    <Empty
      title="No groups yet"
      size="lg"
      body="A group is created when its first member joins. Start two of these consumers: they share the partitions, and if one stops, the other takes over where it left off."
    >
      <Snippet
        title="Python"
        code={`import headrace
with headrace.connect() as b:
    for m in b.topic("orders").consume(group="billing", start="earliest"):
        print(m.offset, m.key, m.json())`}
      />
      <Snippet title="Shell" code="headrace consume orders --group billing --from start" />
    </Empty>
  );
}
