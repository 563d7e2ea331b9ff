// Usage and cost: by day or hour, stacked by topic or meter, as the last report run summed them.

import { Button, PageSection, Spinner, ToggleGroup, ToggleGroupItem } from "@patternfly/react-core";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo } from "react";
import { useMay } from "../../hooks/useSession";
import { call } from "../../lib/client";
import { exactly, money, sum, trimmed } from "../../lib/decimal";
import { bucketTitle, moment } from "../../lib/format";
import { METERS, shown } from "../../lib/meters";
import { curl, python, shell } from "../../lib/recipe";
import { fileAddress } from "../../lib/reports";
import { CopyAs } from "../../ui/CopyAs";
import { StackedBars } from "../../ui/charts/StackedBars";
import { Empty } from "../../ui/Empty";
import { Figure, Figures } from "../../ui/Figures";
import { NoReport } from "../../ui/NoReport";
import { PageHeader } from "../../ui/PageHeader";
import { Problem } from "../../ui/Problem";
import { RunLink } from "../../ui/RunLink";
import { Filters } from "./Filters";
import { bucketsOf, type Span, spanOf, type UsageSearch } from "./search";
import { stacksOf, topicsOf, type Usage as UsageBody } from "./sums";
import { MeterTable, TopicTable } from "./Tables";

const MINUTE_MS = 60_000;

function timeOf(span: Span): string {
  return `from=${new Date(span.from).toISOString()}&to=${new Date(span.to).toISOString()}`;
}

export function Usage() {
  const search = useSearch({ from: "/usage" });
  const navigate = useNavigate();
  // The file is of all organizations.
  const mayDownload = useMay("reports:read");
  // The span moves with the clock; by the minute is enough, and keeps the question the same.
  const now = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS;
  const span = useMemo(() => spanOf(search, now), [search, now]);
  const time = timeOf(span);
  const asked = search.topic ? `&topic_id=${encodeURIComponent(search.topic)}` : "";
  const of = search.meter ? `&meter=${encodeURIComponent(search.meter)}` : "";
  const path = `/v1/usage?group_by=${span.hourly ? "hour" : "day"}_topic&${time}${asked}${of}`;
  const usage = useQuery({
    queryKey: ["usage", path],
    queryFn: () => call<UsageBody>("GET", path),
    placeholderData: keepPreviousData,
  });
  const topics = useQuery({
    queryKey: ["usage", "topics", time],
    queryFn: () => call<UsageBody>("GET", `/v1/usage?group_by=topic&${time}`),
    placeholderData: keepPreviousData,
  });
  const change = (changed: UsageSearch) =>
    navigate({ to: "/usage", search: { ...search, ...changed }, replace: true });
  const found = useMemo(() => topicsOf(topics.data?.items ?? []), [topics.data]);
  const failed = usage.error ?? topics.error;
  return (
    <PageSection>
      <PageHeader
        title="Usage and cost"
        actions={
          usage.data?.run_id && (
            <>
              {mayDownload && (
                <Button
                  component="a"
                  variant="secondary"
                  href={fileAddress(usage.data.run_id, "usage.csv")}
                >
                  Download CSV
                </Button>
              )}
              <CopyAs recipe={recipeOf(search, span)} />
            </>
          )
        }
      />
      {failed && <Problem error={failed} />}
      {usage.isPending && <Spinner aria-label="Loading" />}
      {usage.data && !usage.data.run_id && <NoReport kind="usage" />}
      {usage.data?.run_id && (
        <>
          <Filters
            search={search}
            span={span}
            topics={found}
            meters={metersOf(topics.data, search.meter)}
            onChange={change}
          />
          <Shown usage={usage.data} search={search} span={span} onChange={change} />
          <div className="hr-grid hr-panel">
            <MeterTable usage={usage.data} />
            <TopicTable topics={found} currency={usage.data.cost[0]?.currency ?? ""} />
          </div>
          <Source usage={usage.data} />
        </>
      )}
    </PageSection>
  );
}

/** The meters there are in this time, and the one that is chosen in any case. */
function metersOf(usage: UsageBody | undefined, chosen: string | undefined): string[] {
  const meters = new Set(usage?.totals.map((each) => each.meter));
  if (chosen) meters.add(chosen);
  return [...meters];
}

type ShownProps = {
  usage: UsageBody;
  search: UsageSearch;
  span: Span;
  onChange: (change: UsageSearch) => void;
};

function Shown({ usage, search, span, onChange }: ShownProps) {
  const meter = search.meter ?? "";
  const unit = usage.totals.find((each) => each.meter === meter)?.unit ?? "";
  const currency = usage.cost[0]?.currency ?? "";
  const by = meter ? "topic" : (search.stack ?? "topic");
  const drawn = useMemo(() => {
    // Beyond what the run has seen nothing is known: no bar is drawn there, not one of height 0.
    const until = usage.computed_at ? Date.parse(usage.computed_at) : span.to;
    const buckets = bucketsOf(span, until);
    return { buckets, ...stacksOf(usage.items, buckets, { meter, unit, currency }, by) };
  }, [usage, span, meter, unit, currency, by]);
  if (usage.items.length === 0) {
    return (
      <Empty
        title="No usage in this period"
        size="sm"
        body={
          search.topic || meter
            ? "No usage matches the selected topic and meter."
            : "Nothing was written, stored or read, or no report covers this period yet."
        }
        action={
          <Button
            variant="secondary"
            onClick={() => onChange({ range: "30d", topic: undefined, meter: undefined })}
          >
            Show the last 30 days
          </Button>
        }
      />
    );
  }
  const pick = (index: number) => {
    const day = drawn.buckets[index]?.slice(0, 10);
    onChange({ range: "dates", from: day, to: day });
  };
  const step = span.hourly ? "hour" : "day";
  const what = meter ? (METERS[meter]?.title ?? meter) : "Cost";
  return (
    <div className="hr-stack">
      <Figures isFlowing>
        {usage.cost.map((each) => (
          <Figure key={each.currency} term="Cost" note={exactly(each.amount)}>
            {money(each.amount, each.currency)}
          </Figure>
        ))}
        {usage.totals.map((each) => (
          <Figure key={each.meter} term={METERS[each.meter]?.title ?? each.meter}>
            {shown(each.meter, each.quantity, each.unit)}
          </Figure>
        ))}
      </Figures>
      <StackedBars
        title={`${what} per ${step}`}
        of={span.hourly ? "Hour (UTC)" : "Day (UTC)"}
        buckets={drawn.buckets.map(bucketTitle)}
        series={drawn.series}
        totals={drawn.totals}
        total={drawn.total}
        steps={meter ? (METERS[meter]?.steps ?? "decimal") : "decimal"}
        format={(amount) => axisText(amount, meter, unit, currency)}
        onPick={span.hourly ? undefined : pick}
      >
        {!meter && (
          <ToggleGroup aria-label="Stack by" isCompact>
            {(["topic", "meter"] as const).map((each) => (
              <ToggleGroupItem
                key={each}
                text={each === "topic" ? "By topic" : "By meter"}
                isSelected={by === each}
                onChange={() => onChange({ stack: each })}
              />
            ))}
          </ToggleGroup>
        )}
      </StackedBars>
    </div>
  );
}

/** A step of the axis: an approximation; the table has the exact figures. */
function axisText(amount: number, meter: string, unit: string, currency: string): string {
  if (!meter) return `${trimmed(amount.toFixed(9))} ${currency}`;
  return shown(meter, String(Math.round(amount)), unit);
}

function Source({ usage }: { usage: UsageBody }) {
  const exact = sum(usage.cost.map((each) => each.amount));
  return (
    <p className="hr-note">
      Exact total {exact}, computed by <RunLink id={usage.run_id ?? ""} /> at{" "}
      {moment(usage.computed_at ?? "").slice(0, 19)} UTC. Later usage appears in the next run. The
      cost of each row is rounded to nine decimal places. An invoice rounds the cost of each meter
      once, to the smallest unit of the currency, so its total can differ slightly.
    </p>
  );
}

function recipeOf(search: UsageSearch, span: Span) {
  const by = span.hourly ? "hour" : "day";
  const [since, until] = [span.from, span.to].map((at) => new Date(at).toISOString());
  const { topic, meter } = search;
  const cli = [`headrace usage --by ${by} --since ${since} --until ${until}`];
  const words = [`by="${by}"`, `since="${since}"`, `until="${until}"`];
  const query = [`group_by=${by}`, timeOf(span)];
  if (topic) {
    cli.push(`--topic ${shell(topic)}`);
    words.push(`topic=${JSON.stringify(topic)}`);
    query.push(`topic_id=${encodeURIComponent(topic)}`);
  }
  if (meter) {
    cli.push(`--meter ${shell(meter)}`);
    words.push(`meter=${JSON.stringify(meter)}`);
    query.push(`meter=${encodeURIComponent(meter)}`);
  }
  return {
    cli: cli.join(" "),
    curl: curl("GET", `/v1/usage?${query.join("&")}`),
    python: python(`print(b.admin.usage(${words.join(", ")}))`),
  };
}
