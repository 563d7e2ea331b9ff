// What goes on now. Every number leads to the page where it comes from.

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

/** For whoever may read what things cost, and nothing of what flows. */
function Bills() {
  return (
    <PageSection>
      <div className="hr-stack">
        <Title headingLevel="h1">Home</Title>
        <Figures isTiled>
          <Cost />
        </Figures>
        <p>
          This key reads <Link to="/usage">usage and cost</Link> and the{" "}
          <Link to="/invoices">invoices</Link>. What flows now is shown to keys with the role viewer
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
        <div className="hr-row">
          <Title headingLevel="h1">Home</Title>
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
        </div>
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

/** What somebody must see to, if there is anything. */
function Strip({ now }: { now: Now }) {
  return (
    <>
      {now.silent > 0 && (
        <Alert
          variant="danger"
          isInline
          component="h2"
          title={`${now.silent} ${now.silent === 1 ? "cluster does" : "clusters do"} not answer`}
        >
          What they hold is missing in the figures below. <Link to="/nodes">The nodes</Link> say
          more.
        </Alert>
      )}
      {now.warnings.map((each) => (
        <Alert key={each} variant="warning" isInline component="h2" title={each}>
          <Link to="/nodes">The nodes</Link> say more.
        </Alert>
      ))}
    </>
  );
}

/** A lag as time: what comes in now, for so long. */
function behind(seconds?: number): string {
  if (seconds === undefined) return "";
  return seconds < 1 ? ", less than 1 s behind" : `, some ${count(seconds)} s behind`;
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
        term="In"
        note={in_records === undefined ? "records unknown" : `${count(in_records)} records/s`}
      >
        <Link to="/topics">{rate(in_bytes)}</Link>
      </Figure>
      {operator && (
        <Figure isTile term="Out" note="to all readers of the nodes">
          <Link to="/nodes">{rate(out_bytes)}</Link>
        </Figure>
      )}
      <Figure
        isTile
        term="Worst lag, records"
        note={
          lag
            ? `${lag.group}${behind(lag.seconds)}`
            : now.groups === 0
              ? "no groups yet"
              : "nobody reads now"
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
        term="Groups"
        note={unasked > 0 ? `lag of ${unasked} unknown` : "of all topics"}
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
    ? "no report has run yet"
    : `as of ${moment(usage.data?.computed_at ?? "").slice(0, 16)} UTC`;
  return (
    <Figure isTile term="Cost so far" note={usage.error ? refusal(usage.error) : note}>
      <Link to="/usage" title={cost ? `${cost.amount} ${cost.currency}` : undefined}>
        {text}
      </Link>
    </Figure>
  );
}

function refusal(error: Error): string {
  const mayNot = error instanceof ApiError && error.status === 403;
  return mayNot ? "this key may not see it" : "it cannot be read just now";
}

function Busiest({ now }: { now: Now }) {
  const growing = now.busiest.filter((each) => each.in_bytes > 0);
  const most = growing[0]?.in_bytes ?? 1;
  return (
    <section aria-labelledby="busiest">
      <Title headingLevel="h2" size="lg" id="busiest">
        Where it goes
      </Title>
      {growing.length === 0 && (
        <p className="hr-muted">
          {now.now.in_bytes === undefined
            ? "A rate needs two looks: the second one comes in a moment."
            : "Nothing has been written for the last seconds."}
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
        title="Nothing flows yet"
        size="lg"
        body="This page comes alive by itself once somebody creates a topic, which takes a key with the role editor, and sends to it."
      />
    );
  }
  return (
    <Empty
      title="Nothing flows yet"
      size="lg"
      body={
        <>
          <Link to="/topics">Create a topic</Link> and send to it, or let the demo replay a year of
          flights: this page comes alive by itself.
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
