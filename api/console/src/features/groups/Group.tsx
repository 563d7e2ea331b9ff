// One group: who its members are, and how far each partition is read.

import {
  Breadcrumb,
  BreadcrumbItem,
  PageSection,
  Spinner,
  Title,
  Toolbar,
  ToolbarContent,
  ToolbarItem,
} from "@patternfly/react-core";
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { useQuery } from "@tanstack/react-query";
import { Link, useParams, useSearch } from "@tanstack/react-router";
import { call, type GroupDetail } from "../../lib/client";
import { known } from "../../lib/format";
import { curl, python, shell } from "../../lib/recipe";
import { CopyAs, Snippet } from "../../ui/CopyAs";
import { Missing } from "../../ui/Missing";
import { Problem } from "../../ui/Problem";
import { GroupState } from "./GroupState";

export function Group() {
  const { name } = useParams({ from: "/groups/$name" });
  const { project } = useSearch({ from: "/groups/$name" });
  const path = `/v1/groups/${encodeURIComponent(name)}${project ? `?project_id=${project}` : ""}`;
  const group = useQuery({
    queryKey: ["group", path],
    queryFn: () => call<GroupDetail>("GET", path),
    refetchInterval: 3000,
  });
  if (group.isPending) {
    return (
      <PageSection>
        <Spinner aria-label="Loading" />
      </PageSection>
    );
  }
  if (!group.data) {
    return <Missing what="group" error={group.error} to="/groups" all="All groups" />;
  }
  const body = group.data;
  const recipe = {
    cli: `headrace group lag ${shell(name)}`,
    curl: curl("GET", path),
    python: python(`print(b.group_lag(${JSON.stringify(name)}))`),
  };
  return (
    <PageSection>
      <Breadcrumb aria-label="Where this is">
        <BreadcrumbItem render={() => <Link to="/groups">Groups</Link>} />
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
            <GroupState state={body.state} name={name} />
          </ToolbarItem>
          <ToolbarItem align={{ default: "alignEnd" }}>
            <CopyAs recipe={recipe} />
          </ToolbarItem>
        </ToolbarContent>
      </Toolbar>
      <div className="hr-stack">
        {group.isError && <Problem error={group.error} />}
        <Figures group={body} />
        <Members group={body} />
        <Positions group={body} />
      </div>
    </PageSection>
  );
}

function Figures({ group }: { group: GroupDetail }) {
  const figures = [
    ["Lag, records", known(group.lag)],
    ["Members", String(group.members)],
    ["Partitions read now", String(group.partitions)],
    ["Topics", String(group.topics.length)],
    ["Generation", known(group.generation)],
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

function Members({ group }: { group: GroupDetail }) {
  return (
    <section aria-labelledby="members">
      <Title headingLevel="h2" size="lg" id="members">
        Members
      </Title>
      {group.readers.length === 0 ? (
        <>
          <p className="hr-muted">
            Nobody reads now; what was committed stays. A member goes on where the last one stopped:
          </p>
          <Snippet
            title="Shell"
            // Where it has committed nothing yet, it has to be told where to begin.
            code={`headrace consume ${shell(group.topics[0] ?? "TOPIC")} --group ${shell(group.name)} --from start`}
          />
        </>
      ) : (
        <Table aria-label="Members" variant="compact">
          <Thead>
            <Tr>
              <Th modifier="nowrap" width={40}>
                Member
              </Th>
              <Th modifier="nowrap" className="hr-number">
                Partitions
              </Th>
              <Th modifier="nowrap">Which</Th>
            </Tr>
          </Thead>
          <Tbody>
            {group.readers.map((reader) => (
              <Tr key={reader.member}>
                <Td dataLabel="Member" className="hr-mono">
                  {reader.member}
                </Td>
                <Td dataLabel="Partitions" className="hr-number">
                  {reader.partitions.length}
                </Td>
                <Td dataLabel="Which">
                  {reader.partitions.map((at) => `${at.topic}[${at.partition}]`).join(", ") ||
                    "none: there are more members than partitions"}
                </Td>
              </Tr>
            ))}
          </Tbody>
        </Table>
      )}
    </section>
  );
}

function Positions({ group }: { group: GroupDetail }) {
  const most = Math.max(1, ...group.positions.map((each) => Number(each.lag ?? 0)));
  return (
    <section aria-labelledby="positions">
      <Title headingLevel="h2" size="lg" id="positions">
        Positions
      </Title>
      {group.positions.length === 0 && (
        <p className="hr-muted">It has read nothing and committed nothing that this key may see.</p>
      )}
      {!group.complete && (
        <p className="hr-muted">
          The project has more partitions than are asked at once: positions that nobody reads now
          may be missing. `headrace group lag` asks for all.
        </p>
      )}
      {group.positions.length > 0 && (
        <Table aria-label="Positions" variant="compact">
          <Thead>
            <Tr>
              <Th modifier="nowrap">Topic</Th>
              <Th modifier="nowrap" className="hr-number">
                Partition
              </Th>
              <Th modifier="nowrap" className="hr-number">
                Committed
              </Th>
              <Th modifier="nowrap" className="hr-number">
                End
              </Th>
              <Th modifier="nowrap" className="hr-number">
                Lag
              </Th>
              <Th modifier="nowrap" width={15}>
                Behind
              </Th>
              <Th modifier="nowrap">Member</Th>
            </Tr>
          </Thead>
          <Tbody>
            {group.positions.map((each) => (
              <Tr key={`${each.topic_id}/${each.partition}`}>
                <Td dataLabel="Topic">
                  <Link to="/topics/$topicId" params={{ topicId: each.topic_id }}>
                    {each.topic}
                  </Link>
                </Td>
                <Td dataLabel="Partition" className="hr-number">
                  <Link
                    to="/topics/$topicId"
                    params={{ topicId: each.topic_id }}
                    search={{
                      tab: "messages",
                      p: each.partition,
                      ...(each.committed && { from: "offset" as const, o: each.committed }),
                    }}
                    aria-label={`Messages of ${each.topic}, partition ${each.partition}`}
                  >
                    {each.partition}
                  </Link>
                </Td>
                <Td dataLabel="Committed" className="hr-number">
                  {each.end_offset === undefined || each.committed
                    ? known(each.committed)
                    : "nothing yet"}
                </Td>
                <Td dataLabel="End" className="hr-number">
                  {known(each.end_offset)}
                </Td>
                <Td dataLabel="Lag" className="hr-number">
                  {known(each.lag)}
                </Td>
                <Td dataLabel="Behind">
                  {each.lag && (
                    <span className="hr-bar" aria-hidden="true">
                      <span style={{ width: `${(100 * Number(each.lag)) / most}%` }} />
                    </span>
                  )}
                </Td>
                <Td dataLabel="Member" className="hr-mono">
                  {each.member ?? "nobody"}
                </Td>
              </Tr>
            ))}
          </Tbody>
        </Table>
      )}
    </section>
  );
}
