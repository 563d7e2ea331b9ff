// One topic: its figures of now, its messages, its partitions, its settings.

import {
  Breadcrumb,
  BreadcrumbItem,
  Button,
  PageSection,
  Spinner,
  Tab,
  Tabs,
  TabTitleText,
  Title,
  Toolbar,
  ToolbarContent,
  ToolbarItem,
} from "@patternfly/react-core";
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { useMay } from "../../hooks/useSession";
import { call, type Topic as TopicBody } from "../../lib/client";
import { count, duration, held, moment, size } from "../../lib/format";
import { DeleteDialog } from "../../ui/DeleteDialog";
import { Missing } from "../../ui/Missing";
import { Problem } from "../../ui/Problem";
import { Why } from "../../ui/Why";
import { Messages } from "./Messages";
import { Settings } from "./Settings";

export function Topic() {
  const { topicId } = useParams({ from: "/topics/$topicId" });
  const { tab = "messages" } = useSearch({ from: "/topics/$topicId" });
  const navigate = useNavigate();
  const [deleting, setDeleting] = useState(false);
  const mayDelete = useMay("topics:delete");
  const topic = useQuery({
    queryKey: ["topic", topicId],
    queryFn: () => call<TopicBody>("GET", `/v1/topics/${encodeURIComponent(topicId)}?live=true`),
    refetchInterval: 3000,
  });
  if (topic.isPending) {
    return (
      <PageSection>
        <Spinner aria-label="Loading" />
      </PageSection>
    );
  }
  if (!topic.data)
    return <Missing what="topic" error={topic.error} to="/topics" all="All topics" />;
  const body = topic.data;
  const name = `${body.stream}/${body.name}`;
  const choose = (chosen: string | number) => {
    const to = chosen as "messages" | "partitions" | "settings";
    navigate({ to: "/topics/$topicId", params: { topicId }, search: { tab: to } });
  };
  return (
    <PageSection>
      <Breadcrumb aria-label="Where this is">
        <BreadcrumbItem render={() => <Link to="/topics">Topics</Link>} />
        <BreadcrumbItem isActive>{name}</BreadcrumbItem>
      </Breadcrumb>
      <Toolbar>
        <ToolbarContent alignItems="center">
          <ToolbarItem>
            <Title headingLevel="h1" className="hr-title">
              {name}
            </Title>
          </ToolbarItem>
          <ToolbarItem alignSelf="center">
            <Why shown={body} name={name} />
          </ToolbarItem>
          <ToolbarItem align={{ default: "alignEnd" }}>
            {mayDelete && (
              <Button variant="secondary" isDanger onClick={() => setDeleting(true)}>
                Delete topic
              </Button>
            )}
          </ToolbarItem>
        </ToolbarContent>
      </Toolbar>
      {topic.isError && <Problem error={topic.error} />}
      <Figures topic={body} />
      <br />
      <Tabs
        activeKey={tab}
        onSelect={(_, chosen) => choose(chosen)}
        aria-label="Views of the topic"
      >
        <Tab eventKey="messages" title={<TabTitleText>Messages</TabTitleText>}>
          {tab === "messages" && <Messages key={body.id} topic={body} />}
        </Tab>
        <Tab eventKey="partitions" title={<TabTitleText>Partitions</TabTitleText>}>
          {tab === "partitions" && <Partitions topic={body} />}
        </Tab>
        <Tab eventKey="settings" title={<TabTitleText>Settings</TabTitleText>}>
          {tab === "settings" && <Settings key={body.id} topic={body} />}
        </Tab>
      </Tabs>
      {deleting && (
        <DeleteDialog
          kind="topic"
          path={`/v1/topics/${body.id}`}
          name={name}
          etag={body.etag}
          onClose={() => setDeleting(false)}
          onDone={() => navigate({ to: "/topics" })}
        />
      )}
    </PageSection>
  );
}

function Figures({ topic }: { topic: TopicBody }) {
  const what = held(topic.status.partitions);
  const effective = topic.status.effective;
  const figures = [
    ["Records", what ? count(what.records) : "unknown"],
    ["Size", what ? size(what.bytes) : "unknown"],
    ["Partitions", String(effective.partitions)],
    ["Retention", duration(effective.retention_ms)],
    ["Replicas", String(effective.replication_factor)],
    ["Compression", effective.codec],
  ];
  return (
    <dl className="hr-figures">
      {figures.map(([term, value]) => (
        <div className="hr-figure" key={term}>
          <dt>{term}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function Partitions({ topic }: { topic: TopicBody }) {
  if (topic.status.partitions.length === 0) {
    return (
      <p className="hr-muted">
        No node has described the partitions yet. “Why?” above says what comes next.
      </p>
    );
  }
  return (
    <Table className="hr-panel" aria-label="Partitions" variant="compact">
      <Thead>
        <Tr>
          <Th modifier="nowrap" className="hr-number">
            Partition
          </Th>
          <Th modifier="nowrap">State</Th>
          <Th modifier="nowrap">Reason</Th>
          <Th modifier="nowrap" className="hr-number">
            First offset
          </Th>
          <Th modifier="nowrap" className="hr-number">
            End offset
          </Th>
          <Th modifier="nowrap" className="hr-number">
            Records
          </Th>
          <Th modifier="nowrap" className="hr-number">
            Size
          </Th>
          <Th modifier="nowrap">Primary</Th>
          <Th modifier="nowrap">As of (UTC)</Th>
        </Tr>
      </Thead>
      <Tbody>
        {topic.status.partitions.map((each) => (
          <Tr key={each.index}>
            <Td dataLabel="Partition" className="hr-number">
              <Link
                to="/topics/$topicId"
                params={{ topicId: topic.id }}
                search={{ tab: "messages", p: each.index }}
              >
                {each.index}
              </Link>
            </Td>
            <Td dataLabel="State">{each.state}</Td>
            <Td dataLabel="Reason">{each.reason || "–"}</Td>
            <Td dataLabel="First offset" className="hr-number">
              {count(BigInt(each.start_offset))}
            </Td>
            <Td dataLabel="End offset" className="hr-number">
              {count(BigInt(each.end_offset))}
            </Td>
            <Td dataLabel="Records" className="hr-number">
              {count(BigInt(each.end_offset) - BigInt(each.start_offset))}
            </Td>
            <Td dataLabel="Size" className="hr-number">
              {size(BigInt(each.bytes))}
            </Td>
            <Td dataLabel="Primary" className="hr-mono">
              {each.primary}
            </Td>
            <Td dataLabel="As of (UTC)">{each.observed_at ? moment(each.observed_at) : "–"}</Td>
          </Tr>
        ))}
      </Tbody>
    </Table>
  );
}
