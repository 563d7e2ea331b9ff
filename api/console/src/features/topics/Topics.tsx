// The topics with their state and size.

import { Button } from "@patternfly/react-core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useFilter } from "../../hooks/useFilter";
import { useMay } from "../../hooks/useSession";
import { all, type Topic } from "../../lib/client";
import { count, duration, held, size } from "../../lib/format";
import { curl, python } from "../../lib/recipe";
import { Snippet } from "../../ui/CopyAs";
import type { Column } from "../../ui/DataTable";
import { Empty } from "../../ui/Empty";
import { List } from "../../ui/List";
import { ListPage } from "../../ui/ListPage";
import { ObjectState } from "../../ui/ObjectState";
import { SearchBox } from "../../ui/SearchBox";
import { TopicLink } from "../../ui/TopicLink";
import { CreateTopic } from "./CreateTopic";

const RECIPE = {
  cli: "headrace topic list",
  curl: curl("GET", "/v1/topics"),
  python: python("print(b.admin.topics())"),
};

// Every topic is read each time, so long lists are read less often. Hidden tabs read nothing.
const LONG = 200;
const REFRESH_MS = 5_000;
const REFRESH_LONG_MS = 30_000;

const nameOf = (topic: Topic) => `${topic.stream}/${topic.name}`;

const COLUMNS: Column<Topic>[] = [
  {
    title: "Topic",
    width: 30,
    cell: (topic) => <TopicLink id={topic.id} name={nameOf(topic)} />,
  },
  { title: "State", cell: (topic) => <ObjectState shown={topic} name={nameOf(topic)} /> },
  { title: "Partitions", isNumber: true, cell: (topic) => topic.status.effective.partitions },
  {
    title: "Records",
    isNumber: true,
    cell: (topic) => {
      const what = held(topic.status.partitions);
      return what ? count(what.records) : "unknown";
    },
  },
  {
    title: "Size",
    isNumber: true,
    cell: (topic) => {
      const what = held(topic.status.partitions);
      return what ? size(what.bytes) : "unknown";
    },
  },
  {
    title: "Retention",
    isNumber: true,
    cell: (topic) => duration(topic.status.effective.retention_ms),
  },
];

export function Topics() {
  const [creating, setCreating] = useState(false);
  const mayCreate = useMay("topics:create");
  const topics = useQuery({
    queryKey: ["topics"],
    queryFn: () => all<Topic>("/v1/topics?live=true"),
    refetchInterval: ({ state }) =>
      (state.data?.length ?? 0) > LONG ? REFRESH_LONG_MS : REFRESH_MS,
  });
  const items = topics.data ?? [];
  const filter = useFilter(items, nameOf);
  const create = mayCreate && <Button onClick={() => setCreating(true)}>Create topic</Button>;
  return (
    <ListPage
      title="Topics"
      tools={<SearchBox label="Search topics" filter={filter} />}
      recipe={RECIPE}
      actions={create}
    >
      <List
        label="Topics"
        noun="topic"
        query={topics}
        items={items}
        filter={filter}
        columns={COLUMNS}
        keyOf={(topic) => topic.id}
        empty={mayCreate ? <NoTopics create={create} /> : <NoneToRead />}
      />
      {creating && <CreateTopic onClose={() => setCreating(false)} />}
    </ListPage>
  );
}

function NoneToRead() {
  return (
    <Empty
      title="No topics yet"
      size="lg"
      body="A topic stores records, ordered by key, until retention deletes them. Creating one requires a key with the editor or owner role."
    />
  );
}

function NoTopics({ create }: { create: React.ReactNode }) {
  return (
    <Empty
      title="No topics yet"
      size="lg"
      body="A topic stores records, ordered by key, until retention deletes them. Create one here or from a shell, then send the first record."
      action={create}
    >
      <Snippet
        title="Shell"
        code={"headrace topic create orders\necho hello | headrace produce orders"}
      />
      <Snippet title="Python" code={python('b.topic("orders").send({"id": 7}, key="cust-42")')} />
    </Empty>
  );
}
