// Current activity. Every number links to the page that explains it.

import { Alert, PageSection, Spinner, Title } from "@patternfly/react-core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMay, useSession } from "../../hooks/useSession";
import { ApiError, call, type Usage } from "../../lib/client";
import { money } from "../../lib/decimal";
import { count, counted, moment, size } from "../../lib/format";
import { python } from "../../lib/recipe";
import { Bar } from "../../ui/Bar";
import { Snippet } from "../../ui/CopyAs";
import { Empty } from "../../ui/Empty";
import { Figure, Figures } from "../../ui/Figures";
import { PageHeader } from "../../ui/PageHeader";
import { TopicLink } from "../../ui/TopicLink";
import { RateChart } from "./RateChart";
import { type Now, useLive } from "./useLive";

export function Home() {
  const who = useSession();
  if (!who.data) return null;
  return who.data.permissions.includes("topics:read") ? (
    <Flow operator={who.data.operator} />
  ) : (
    <Bills />
  );
}

/** For keys that can read usage and cost only. */
function Bills() {
  return (
    <PageSection>
      <div className="hr-stack">
        <PageHeader title="Home" />
        <Figures isTiled>
          <Cost />
        </Figures>
        <p>
          This key can view <Link to="/usage">usage and cost</Link> and{" "}
          <Link to="/invoices">invoices</Link>. Live throughput requires a key with the viewer role
          or higher.
        </p>
      </div>
    </PageSection>
  );
}

function Flow({ operator }: { operator: boolean }) {
  const live = useLive();
  const now = live.now;
  return (
    <PageSection>
      <div className="hr-stack">
        <PageHeader
          title="Home"
          actions={
            <span className="hr-muted" role="status">
              {live.connected && now ? (
                <>
                  <span className="hr-live" aria-hidden="true" />
                  Live
                </>
              ) : (
                "Connecting…"
              )}
            </span>
          }
        />
        {now === null && <Spinner aria-label="Loading" />}
        {now && <Strip now={now} />}
        {now && now.topics === 0 && now.silent === 0 && <Nothing />}
        {now && now.topics > 0 && (
          <>
            <Rates now={now} operator={operator} />
            <RateChart points={live.points} out={operator} />
            <Busiest now={now} />
          </>
        )}
      </div>
    </PageSection>
  );
}

/** Conditions that need attention, if there are any. */
function Strip({ now }: { now: Now }) {
  return (
    <>
      {now.silent > 0 && (
        <Alert
          variant="danger"
          isInline
          component="h2"
          title={`${now.silent} ${now.silent === 1 ? "cluster is" : "clusters are"} not responding`}
        >
          The figures below do not include unavailable clusters. See <Link to="/nodes">Nodes</Link>{" "}
          for details.
        </Alert>
      )}
      {now.warnings.map((each) => (
        <Alert key={each} variant="warning" isInline component="h2" title={each}>
          See <Link to="/nodes">Nodes</Link> for details.
        </Alert>
      ))}
    </>
  );
}

/** A lag as time: what comes in now, for so long. */
function behind(seconds?: number): string {
  if (seconds === undefined) return "";
  return seconds < 1 ? ", less than 1 s behind" : `, about ${count(seconds)} s behind`;
}

function Rates({ now, operator }: { now: Now; operator: boolean }) {
  const { in_bytes, in_records, out_bytes } = now.now;
  const rate = (bytes?: number) => (bytes === undefined ? "unknown" : `${size(bytes)}/s`);
  const lag = now.worst_lag;
  const unasked = now.groups_unknown;
  return (
    <Figures isTiled>
      <Figure
        isTile
        term="Ingress"
        note={in_records === undefined ? "record rate unknown" : `${count(in_records)} records/s`}
      >
        <Link to="/topics">{rate(in_bytes)}</Link>
      </Figure>
      {operator && (
        <Figure isTile term="Egress" note="to all consumers">
          <Link to="/nodes">{rate(out_bytes)}</Link>
        </Figure>
      )}
      <Figure
        isTile
        term="Highest lag (records)"
        note={
          lag
            ? `${lag.group}${behind(lag.seconds)}`
            : now.groups === 0
              ? "no groups yet"
              : "no active consumers"
        }
      >
        {lag ? (
          <Link
            to="/groups/$name"
            params={{ name: lag.group }}
            search={{ project: lag.project_id }}
          >
            {count(BigInt(lag.records))}
          </Link>
        ) : (
          <Link to="/groups">{now.groups === 0 ? "none" : "unknown"}</Link>
        )}
      </Figure>
      <Figure
        isTile
        term="Consumer groups"
        note={unasked > 0 ? `lag of ${unasked} unknown` : "across all topics"}
      >
        <Link to="/groups">{counted(now.groups, "group")}</Link>
      </Figure>
      <Figure isTile term="Stored" note={counted(now.topics, "topic")}>
        <Link to="/topics">{size(BigInt(now.stored_bytes))}</Link>
      </Figure>
      <Cost />
    </Figures>
  );
}

function Cost() {
  const usage = useQuery({
    queryKey: ["usage", "so-far"],
    queryFn: () => call<Usage>("GET", "/v1/usage?group_by=day"),
    refetchInterval: 60_000,
    staleTime: 30_000,
  });
  const cost = usage.data?.cost[0];
  const run = usage.data?.run_id;
  const text = cost ? money(cost.amount, cost.currency) : "unknown";
  const note = !run
    ? "no usage report yet"
    : `as of ${moment(usage.data?.computed_at ?? "").slice(0, 16)} UTC`;
  return (
    <Figure isTile term="Cost to date" note={usage.error ? refusal(usage.error) : note}>
      <Link to="/usage" title={cost ? `${cost.amount} ${cost.currency}` : undefined}>
        {text}
      </Link>
    </Figure>
  );
}

function refusal(error: Error): string {
  const mayNot = error instanceof ApiError && error.status === 403;
  return mayNot ? "not permitted for this key" : "temporarily unavailable";
}

function Busiest({ now }: { now: Now }) {
  const growing = now.busiest.filter((each) => each.in_bytes > 0);
  const most = growing[0]?.in_bytes ?? 1;
  return (
    <section aria-labelledby="busiest">
      <Title headingLevel="h2" size="lg" id="busiest">
        Busiest topics
      </Title>
      {growing.length === 0 && (
        <p className="hr-muted">
          {now.now.in_bytes === undefined
            ? "Rates appear after the second measurement, in a few seconds."
            : "No writes in the last few seconds."}
        </p>
      )}
      <ul className="hr-bars">
        {growing.map((each) => (
          <li key={each.topic_id}>
            <TopicLink id={each.topic_id} name={each.name} />
            <span className="hr-number">{size(each.in_bytes)}/s</span>
            <Bar part={each.in_bytes / most} />
          </li>
        ))}
      </ul>
    </section>
  );
}

function Nothing() {
  const may = useMay("topics:create");
  if (!may) {
    return (
      <Empty
        title="No data yet"
        size="lg"
        body="This page updates automatically once a topic receives data. Creating a topic requires a key with the editor role."
      />
    );
  }
  return (
    <Empty
      title="No data yet"
      size="lg"
      body={
        <>
          <Link to="/topics">Create a topic</Link> and send data to it, or let the demo replay a
          year of flights. This page updates automatically.
        </>
      }
    >
      <Snippet title="Demo" code={"headrace down\nheadrace up --detach --demo"} />
      <Snippet
        title="Shell"
        code={"headrace topic create orders\necho hello | headrace produce orders"}
      />
      <Snippet title="Python" code={python('b.topic("orders").send({"id": 7}, key="cust-42")')} />
    </Empty>
  );
}
