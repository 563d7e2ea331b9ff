// From the items of /v1/usage to what is drawn: series of the largest topics or meters, by time.

import type { components } from "../../../build/schema";
import { compared, money, sum } from "../../api/decimal";
import { SERIES_MAX } from "../../charts/drawing";
import type { Series } from "../../charts/StackedBars";
import { meterTitle, shown } from "./meters";

export type Usage = components["schemas"]["UsageBody"];
export type Item = Usage["items"][number];

const OTHERS = "everything else";

export type Stacks = { series: Series[]; totals: string[]; total: string };

function groupedBy(items: Item[], nameOf: (item: Item) => string): Map<string, Item[]> {
  const groups = new Map<string, Item[]>();
  for (const item of items) {
    const group = groups.get(nameOf(item));
    if (group) group.push(item);
    else groups.set(nameOf(item), [item]);
  }
  return groups;
}

/** What is summed: the cost of everything, or the quantity of one meter. */
export type What = { meter: string; unit: string; currency: string };

function text(what: What, amount: string): string {
  return what.meter ? shown(what.meter, amount, what.unit) : money(amount, what.currency);
}

export function stacksOf(
  items: Item[],
  buckets: string[],
  what: What,
  by: "topic" | "meter",
): Stacks {
  const amountOf = (item: Item) => (what.meter ? item.quantity : item.cost.amount);
  const nameOf = (item: Item) => (by === "meter" ? meterTitle(item.meter) : (item.topic ?? "–"));
  const known = new Set(buckets);
  const used = items.filter((item) => known.has(item.group));
  const sums = Array.from(groupedBy(used, nameOf), ([name, found]) => ({
    name,
    found,
    total: sum(found.map(amountOf)),
  }));
  sums.sort((a, b) => compared(b.total, a.total) || (a.name < b.name ? -1 : 1));
  // What is nothing gets no colour, unless there is nothing else.
  const worth = sums.filter((each) => compared(each.total, "0") !== 0);
  const most = worth.length > 0 ? worth : sums.slice(0, 1);
  const first = most.length > SERIES_MAX ? most.slice(0, SERIES_MAX - 1) : most;
  const rest = most.slice(first.length).flatMap((each) => each.found);
  const groups = first.map(({ name, found }) => ({ name, found }));
  if (rest.length > 0) groups.push({ name: OTHERS, found: rest });
  const exact = (found: Item[]) => {
    const byBucket = groupedBy(found, (item) => item.group);
    return buckets.map((bucket) => sum((byBucket.get(bucket) ?? []).map(amountOf)));
  };
  return {
    series: groups.map(({ name, found }) => {
      const values = exact(found);
      return {
        name,
        amounts: values.map(Number),
        texts: values.map((value) => text(what, value)),
        total: text(what, sum(values)),
      };
    }),
    totals: exact(used).map((value) => text(what, value)),
    total: text(what, sum(used.map(amountOf))),
  };
}

/** Cost of each topic, the dearest first, with what it used of each meter. */
export type TopicSum = { name: string; id: string; cost: string; used: Map<string, Item> };

export function topicsOf(items: Item[]): TopicSum[] {
  const found = groupedBy(items, (item) => item.topic_id ?? item.group);
  const topics = Array.from(found, ([id, of]) => ({
    id,
    name: of[0].group,
    cost: sum(of.map((item) => item.cost.amount)),
    used: new Map(of.map((item) => [item.meter, item])),
  }));
  return topics.sort((a, b) => compared(b.cost, a.cost) || (a.name < b.name ? -1 : 1));
}
