// One topic: its figures of now, its messages, its partitions, its settings.

import { Button, Tab, Tabs, TabTitleText } from "@patternfly/react-core";
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { useMay } from "../../hooks/useSession";
import { call, type Partition, type Topic as TopicBody } from "../../lib/client";
import { count, duration, held, moment, size } from "../../lib/format";
import { type Column, DataTable } from "../../ui/DataTable";
import { DeleteDialog } from "../../ui/DeleteDialog";
import { DetailPage } from "../../ui/DetailPage";
import { Figure, Figures } from "../../ui/Figures";
import { ObjectState } from "../../ui/ObjectState";
import { PageHeader } from "../../ui/PageHeader";
import { Messages } from "./Messages";
import { Settings } from "./Settings";
import type { TABS } from "./search";

export function Topic() {
  const { topicId } = useParams({ from: "/topics/$topicId" });
  const topic = useQuery({
    queryKey: ["topic", topicId],
    queryFn: () => call<TopicBody>("GET", `/v1/topics/${encodeURIComponent(topicId)}?live=true`),
    // A page that could not be loaded keeps its error: a new attempt would hide the reason.
    refetchInterval: ({ state }) => (state.data ? 3000 : false),
  });
  return (
    <DetailPage query={topic} noun="topic" parent={{ to: "/topics", all: "All topics" }}>
      {(body) => <Shown topic={body} />}
    </DetailPage>
  );
}

function Shown({ topic }: { topic: TopicBody }) {
  const { tab = "messages" } = useSearch({ from: "/topics/$topicId" });
  const navigate = useNavigate();
  const [deleting, setDeleting] = useState(false);
  const mayDelete = useMay("topics:delete");
  const name = `${topic.stream}/${topic.name}`;
  const choose = (chosen: string | number) =>
    navigate({
      to: "/topics/$topicId",
      params: { topicId: topic.id },
      search: { tab: chosen as (typeof TABS)[number] },
    });
  const remove = (
    <Button variant="secondary" isDanger onClick={() => setDeleting(true)}>
      Delete topic
    </Button>
  );
  return (
    <>
      <PageHeader
        title={name}
        parent={{ to: "/topics", title: "Topics" }}
        state={<ObjectState shown={topic} name={name} />}
        actions={mayDelete && remove}
      />
      <Now topic={topic} />
      <br />
      <Tabs activeKey={tab} onSelect={(_, chosen) => choose(chosen)} aria-label="Topic views">
        <Tab eventKey="messages" title={<TabTitleText>Messages</TabTitleText>}>
          {tab === "messages" && <Messages key={topic.id} topic={topic} />}
        </Tab>
        <Tab eventKey="partitions" title={<TabTitleText>Partitions</TabTitleText>}>
          {tab === "partitions" && <Partitions topic={topic} />}
        </Tab>
        <Tab eventKey="settings" title={<TabTitleText>Settings</TabTitleText>}>
          {tab === "settings" && <Settings key={topic.id} topic={topic} />}
        </Tab>
      </Tabs>
      {deleting && (
        <DeleteDialog
          kind="topic"
          path={`/v1/topics/${topic.id}`}
          name={name}
          etag={topic.etag}
          onClose={() => setDeleting(false)}
          onDone={() => navigate({ to: "/topics" })}
        />
      )}
    </>
  );
}

function Now({ topic }: { topic: TopicBody }) {
  const what = held(topic.status.partitions);
  const effective = topic.status.effective;
  return (
    <Figures>
      <Figure term="Records">{what ? count(what.records) : "unknown"}</Figure>
      <Figure term="Size">{what ? size(what.bytes) : "unknown"}</Figure>
      <Figure term="Partitions">{effective.partitions}</Figure>
      <Figure term="Retention">{duration(effective.retention_ms)}</Figure>
      <Figure term="Replicas">{effective.replication_factor}</Figure>
      <Figure term="Compression">{effective.codec}</Figure>
    </Figures>
  );
}

function columnsOf(topicId: string): Column<Partition>[] {
  return [
    {
      title: "Partition",
      isNumber: true,
      cell: ({ index }) => (
        <Link to="/topics/$topicId" params={{ topicId }} search={{ tab: "messages", p: index }}>
          {index}
        </Link>
      ),
    },
    { title: "State", cell: (each) => each.state },
    { title: "Reason", cell: (each) => each.reason || "–" },
    { title: "First offset", isNumber: true, cell: (each) => count(BigInt(each.start_offset)) },
    { title: "End offset", isNumber: true, cell: (each) => count(BigInt(each.end_offset)) },
    {
      title: "Records",
      isNumber: true,
      cell: (each) => count(BigInt(each.end_offset) - BigInt(each.start_offset)),
    },
    { title: "Size", isNumber: true, cell: (each) => size(BigInt(each.bytes)) },
    { title: "Primary", isMono: true, cell: (each) => each.primary },
    {
      title: "Observed (UTC)",
      cell: (each) => (each.observed_at ? moment(each.observed_at) : "–"),
    },
  ];
}

function Partitions({ topic }: { topic: TopicBody }) {
  if (topic.status.partitions.length === 0) {
    return (
      <p className="hr-muted">
        No node has reported the partitions yet. Select “Explain” above to see what happens next.
      </p>
    );
  }
  return (
    <div className="hr-panel">
      <DataTable
        label="Partitions"
        columns={columnsOf(topic.id)}
        rows={topic.status.partitions}
        keyOf={(each) => each.index}
        isCompact
      />
    </div>
  );
}
