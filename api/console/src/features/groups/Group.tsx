// One group: who its members are, and how far each partition is read.

import { Title } from "@patternfly/react-core";
import { useQuery } from "@tanstack/react-query";
import { Link, useParams, useSearch } from "@tanstack/react-router";
import { call, type GroupDetail } from "../../lib/client";
import { known } from "../../lib/format";
import { curl, python, shell } from "../../lib/recipe";
import { Bar } from "../../ui/Bar";
import { CopyAs, Snippet } from "../../ui/CopyAs";
import { type Column, DataTable } from "../../ui/DataTable";
import { DetailPage } from "../../ui/DetailPage";
import { Figure, Figures } from "../../ui/Figures";
import { PageHeader } from "../../ui/PageHeader";
import { TopicLink } from "../../ui/TopicLink";
import { GroupState } from "./GroupState";

type Reader = GroupDetail["readers"][number];
type Position = GroupDetail["positions"][number];

export function Group() {
  const { name } = useParams({ from: "/groups/$name" });
  const { project } = useSearch({ from: "/groups/$name" });
  const path = `/v1/groups/${encodeURIComponent(name)}${project ? `?project_id=${project}` : ""}`;
  const group = useQuery({
    queryKey: ["group", path],
    queryFn: () => call<GroupDetail>("GET", path),
    // A page that could not be loaded keeps its error: a new attempt would hide the reason.
    refetchInterval: ({ state }) => (state.data ? 3000 : false),
  });
  const recipe = {
    cli: `headrace group lag ${shell(name)}`,
    curl: curl("GET", path),
    python: python(`print(b.group_lag(${JSON.stringify(name)}))`),
  };
  return (
    <DetailPage
      query={group}
      noun="consumer group"
      parent={{ to: "/groups", all: "All consumer groups" }}
    >
      {(body) => (
        <>
          <PageHeader
            title={name}
            parent={{ to: "/groups", title: "Consumer groups" }}
            state={<GroupState state={body.state} name={name} />}
            actions={<CopyAs recipe={recipe} />}
          />
          <div className="hr-stack">
            <Now group={body} />
            <Members group={body} />
            <Positions group={body} />
          </div>
        </>
      )}
    </DetailPage>
  );
}

function Now({ group }: { group: GroupDetail }) {
  return (
    <Figures>
      <Figure term="Lag (records)">{known(group.lag)}</Figure>
      <Figure term="Members">{group.members}</Figure>
      <Figure term="Assigned partitions">{group.partitions}</Figure>
      <Figure term="Topics">{group.topics.length}</Figure>
      <Figure term="Generation">{known(group.generation)}</Figure>
    </Figures>
  );
}

const MEMBER_COLUMNS: Column<Reader>[] = [
  { title: "Member", width: 40, isMono: true, cell: (reader) => reader.member },
  { title: "Partitions", isNumber: true, cell: (reader) => reader.partitions.length },
  {
    title: "Assignment",
    cell: (reader) =>
      reader.partitions.map((at) => `${at.topic}[${at.partition}]`).join(", ") ||
      "None: there are more members than partitions",
  },
];

function Members({ group }: { group: GroupDetail }) {
  return (
    <section aria-labelledby="members">
      <Title headingLevel="h2" size="lg" id="members">
        Members
      </Title>
      {group.readers.length === 0 ? (
        <>
          <p className="hr-muted">
            No active consumers. Committed offsets are kept; a new member resumes where the last one
            stopped:
          </p>
          <Snippet
            title="Shell"
            // Where it has committed nothing yet, it must be given a start position.
            code={`headrace consume ${shell(group.topics[0] ?? "TOPIC")} --group ${shell(group.name)} --from start`}
          />
        </>
      ) : (
        <DataTable
          label="Members"
          columns={MEMBER_COLUMNS}
          rows={group.readers}
          keyOf={(reader) => reader.member}
          isCompact
        />
      )}
    </section>
  );
}

/** `most`: the largest lag, which fills its bar. */
function positionColumns(most: number): Column<Position>[] {
  return [
    {
      title: "Topic",
      cell: (each) => <TopicLink id={each.topic_id} name={each.topic} />,
    },
    {
      title: "Partition",
      isNumber: true,
      cell: (each) => (
        <Link
          to="/topics/$topicId"
          params={{ topicId: each.topic_id }}
          search={{
            tab: "messages",
            p: each.partition,
            ...(each.committed && { from: "offset" as const, o: each.committed }),
          }}
          aria-label={`${each.partition}: messages of ${each.topic}`}
        >
          {each.partition}
        </Link>
      ),
    },
    {
      title: "Committed offset",
      isNumber: true,
      cell: (each) =>
        each.end_offset === undefined || each.committed ? known(each.committed) : "None",
    },
    { title: "End offset", isNumber: true, cell: (each) => known(each.end_offset) },
    { title: "Lag", isNumber: true, cell: (each) => known(each.lag) },
    {
      title: "Relative lag",
      width: 15,
      cell: (each) => each.lag && <Bar part={Number(each.lag) / most} />,
    },
    { title: "Member", isMono: true, cell: (each) => each.member ?? "No consumer" },
  ];
}

function Positions({ group }: { group: GroupDetail }) {
  const most = Math.max(1, ...group.positions.map((each) => Number(each.lag ?? 0)));
  return (
    <section aria-labelledby="positions">
      <Title headingLevel="h2" size="lg" id="positions">
        Lag by partition
      </Title>
      {group.positions.length === 0 && (
        <p className="hr-muted">
          This group has no assignments or committed offsets that this key can view.
        </p>
      )}
      {!group.complete && (
        <p className="hr-muted">
          The project has more partitions than one request can query, so partitions without a
          consumer may be missing. Run <code>headrace group lag</code> to see all of them.
        </p>
      )}
      {group.positions.length > 0 && (
        <DataTable
          label="Lag by partition"
          columns={positionColumns(most)}
          rows={group.positions}
          keyOf={(each) => `${each.topic_id}/${each.partition}`}
          isCompact
        />
      )}
    </section>
  );
}
