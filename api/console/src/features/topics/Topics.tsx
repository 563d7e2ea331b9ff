import {
  Button,
  EmptyState,
  EmptyStateActions,
  EmptyStateBody,
  EmptyStateFooter,
  PageSection,
  SearchInput,
  Spinner,
  Title,
  Toolbar,
  ToolbarContent,
  ToolbarItem,
} from "@patternfly/react-core";
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useMay } from "../../hooks/useSession";
import { all, type Topic } from "../../lib/client";
import { count, duration, held, size } from "../../lib/format";
import { curl, python } from "../../lib/recipe";
import { CopyAs, Snippet } from "../../ui/CopyAs";
import { NoMatch } from "../../ui/NoMatch";
import { Problem } from "../../ui/Problem";
import { Why } from "../../ui/Why";
import { CreateTopic } from "./CreateTopic";

const SHOWN_MAX = 200;

const RECIPE = {
  cli: "headrace topic list",
  curl: curl("GET", "/v1/topics"),
  python: python("print(b.admin.topics())"),
};

export function Topics() {
  const [creating, setCreating] = useState(false);
  const [search, setSearch] = useState("");
  const mayCreate = useMay("topics:create");
  const topics = useQuery({
    queryKey: ["topics"],
    queryFn: () => all<Topic>("/v1/topics?live=true"),
    refetchInterval: 5000,
  });
  const found = (topics.data ?? []).filter((topic) =>
    `${topic.stream}/${topic.name}`.toLowerCase().includes(search.toLowerCase()),
  );
  return (
    <PageSection>
      <Toolbar>
        <ToolbarContent alignItems="center">
          <ToolbarItem>
            <Title headingLevel="h1">Topics</Title>
          </ToolbarItem>
          <ToolbarItem className="hr-search">
            <SearchInput
              aria-label="Search topics"
              placeholder="Search ( / )"
              value={search}
              onChange={(_, value) => setSearch(value)}
              onClear={() => setSearch("")}
            />
          </ToolbarItem>
          <ToolbarItem align={{ default: "alignEnd" }} className="hr-acts">
            <CopyAs recipe={RECIPE} />
            {mayCreate && <Button onClick={() => setCreating(true)}>Create topic</Button>}
          </ToolbarItem>
        </ToolbarContent>
      </Toolbar>
      {topics.isPending && <Spinner aria-label="Loading" />}
      {topics.isError && <Problem error={topics.error} />}
      {topics.data?.length === 0 &&
        (mayCreate ? <NoTopics onCreate={() => setCreating(true)} /> : <NoneToRead />)}
      {topics.data && topics.data.length > 0 && found.length === 0 && (
        <NoMatch of="topic" onClear={() => setSearch("")} />
      )}
      {found.length > 0 && <List topics={found} />}
      {creating && <CreateTopic onClose={() => setCreating(false)} />}
    </PageSection>
  );
}

function List({ topics }: { topics: Topic[] }) {
  const shown = topics.slice(0, SHOWN_MAX);
  return (
    <>
      <Table aria-label="Topics">
        <Thead>
          <Tr>
            <Th modifier="nowrap" width={30}>
              Topic
            </Th>
            <Th modifier="nowrap">State</Th>
            <Th modifier="nowrap" className="hr-number">
              Partitions
            </Th>
            <Th modifier="nowrap" className="hr-number">
              Records
            </Th>
            <Th modifier="nowrap" className="hr-number">
              Size
            </Th>
            <Th modifier="nowrap" className="hr-number">
              Retention
            </Th>
          </Tr>
        </Thead>
        <Tbody>
          {shown.map((topic) => {
            const what = held(topic.status.partitions);
            const name = `${topic.stream}/${topic.name}`;
            return (
              <Tr key={topic.id}>
                <Td dataLabel="Topic">
                  <Link to="/topics/$topicId" params={{ topicId: topic.id }}>
                    {name}
                  </Link>
                </Td>
                <Td dataLabel="State">
                  <Why shown={topic} name={name} />
                </Td>
                <Td dataLabel="Partitions" className="hr-number">
                  {topic.status.effective.partitions}
                </Td>
                <Td dataLabel="Records" className="hr-number">
                  {what ? count(what.records) : "unknown"}
                </Td>
                <Td dataLabel="Size" className="hr-number">
                  {what ? size(what.bytes) : "unknown"}
                </Td>
                <Td dataLabel="Retention" className="hr-number">
                  {duration(topic.status.effective.retention_ms)}
                </Td>
              </Tr>
            );
          })}
        </Tbody>
      </Table>
      <p className="hr-muted" aria-live="polite">
        {shown.length < topics.length
          ? `The first ${shown.length} of ${topics.length}; search to narrow them.`
          : `${topics.length} ${topics.length === 1 ? "topic" : "topics"}`}
      </p>
    </>
  );
}

function NoneToRead() {
  return (
    <EmptyState titleText="No topics yet" headingLevel="h2" variant="lg">
      <EmptyStateBody>
        A topic holds records in order of their keys until its retention lets them go. To create one
        takes a key with the role editor or owner; yours reads.
      </EmptyStateBody>
    </EmptyState>
  );
}

function NoTopics({ onCreate }: { onCreate: () => void }) {
  return (
    <EmptyState titleText="No topics yet" headingLevel="h2" variant="lg">
      <EmptyStateBody>
        A topic holds records in order of their keys until its retention lets them go. Create one
        here or from a shell, then send the first record.
      </EmptyStateBody>
      <EmptyStateFooter>
        <EmptyStateActions>
          <Button onClick={onCreate}>Create topic</Button>
        </EmptyStateActions>
        <Snippet
          title="Shell"
          code={"headrace topic create orders\necho hello | headrace produce orders"}
        />
        <Snippet title="Python" code={python('b.topic("orders").send({"id": 7}, key="cust-42")')} />
      </EmptyStateFooter>
    </EmptyState>
  );
}
