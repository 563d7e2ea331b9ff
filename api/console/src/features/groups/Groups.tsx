import {
  EmptyState,
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
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { usePages } from "../../hooks/usePages";
import type { Group } from "../../lib/client";
import { known } from "../../lib/format";
import { curl, python } from "../../lib/recipe";
import { CopyAs, Snippet } from "../../ui/CopyAs";
import { More } from "../../ui/More";
import { NoMatch } from "../../ui/NoMatch";
import { Problem } from "../../ui/Problem";
import { GroupState } from "./GroupState";

const PATH = "/v1/groups?lag=true&page_size=200";

export function Groups() {
  const [search, setSearch] = useState("");
  const groups = usePages<Group>(["groups"], PATH, 5000);
  const all = groups.items;
  const found = all.filter((group) =>
    `${group.name} ${group.topics.join(" ")}`.toLowerCase().includes(search.toLowerCase()),
  );
  const recipe = {
    cli: "headrace group list",
    curl: curl("GET", PATH),
    python: python("print(b.list_groups(lag=True))"),
  };
  return (
    <PageSection>
      <Toolbar>
        <ToolbarContent alignItems="center">
          <ToolbarItem>
            <Title headingLevel="h1">Groups</Title>
          </ToolbarItem>
          <ToolbarItem className="hr-search">
            <SearchInput
              aria-label="Search groups"
              placeholder="Search ( / )"
              value={search}
              onChange={(_, value) => setSearch(value)}
              onClear={() => setSearch("")}
            />
          </ToolbarItem>
          <ToolbarItem align={{ default: "alignEnd" }}>
            <CopyAs recipe={recipe} />
          </ToolbarItem>
        </ToolbarContent>
      </Toolbar>
      <p className="hr-muted">
        A group shares the partitions of its topics among its members, and remembers how far it has
        read.
      </p>
      {groups.isPending && <Spinner aria-label="Loading" />}
      {groups.isError && <Problem error={groups.error} />}
      {groups.data && all.length === 0 && <NoGroups />}
      {all.length > 0 && found.length === 0 && (
        <NoMatch
          of={groups.hasNextPage ? "group of these" : "group"}
          onClear={() => setSearch("")}
        />
      )}
      {found.length > 0 && <List groups={found} />}
      <More pages={groups}>More groups</More>
    </PageSection>
  );
}

function List({ groups }: { groups: Group[] }) {
  return (
    <>
      <Table aria-label="Groups">
        <Thead>
          <Tr>
            <Th modifier="nowrap" width={25}>
              Group
            </Th>
            <Th modifier="nowrap">State</Th>
            <Th modifier="nowrap" className="hr-number">
              Members
            </Th>
            <Th modifier="nowrap" className="hr-number">
              Partitions
            </Th>
            <Th modifier="nowrap" className="hr-number">
              Lag, records
            </Th>
            <Th modifier="nowrap">Reads</Th>
          </Tr>
        </Thead>
        <Tbody>
          {groups.map((group) => (
            <Tr key={`${group.cluster_id}/${group.project_id}/${group.name}`}>
              <Td dataLabel="Group">
                <Link
                  to="/groups/$name"
                  params={{ name: group.name }}
                  search={{ project: group.project_id }}
                >
                  {group.name}
                </Link>
              </Td>
              <Td dataLabel="State">
                <GroupState state={group.state} name={group.name} />
              </Td>
              <Td dataLabel="Members" className="hr-number">
                {group.members}
              </Td>
              <Td dataLabel="Partitions" className="hr-number">
                {group.partitions}
              </Td>
              <Td dataLabel="Lag, records" className="hr-number">
                {known(group.lag)}
              </Td>
              <Td dataLabel="Reads">{group.topics.join(", ") || "–"}</Td>
            </Tr>
          ))}
        </Tbody>
      </Table>
      <p className="hr-muted" aria-live="polite">
        {groups.length} {groups.length === 1 ? "group" : "groups"}. Where nobody reads now, the lag
        is that of every topic the group has committed in.
      </p>
    </>
  );
}

function NoGroups() {
  return (
    <EmptyState titleText="No groups yet" headingLevel="h2" variant="lg">
      <EmptyStateBody>
        A group begins with its first member. Start two of these: they share the partitions, and
        when one ends the other takes over where it stopped.
      </EmptyStateBody>
      <EmptyStateFooter>
        <Snippet
          title="Python"
          code={`import headrace
with headrace.connect() as b:
    for m in b.topic("orders").consume(group="billing", start="earliest"):
        print(m.offset, m.key, m.json())`}
        />
        <Snippet title="Shell" code="headrace consume orders --group billing --from start" />
      </EmptyStateFooter>
    </EmptyState>
  );
}
