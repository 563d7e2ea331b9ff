// From the items of /v1/usage to what is drawn and listed.

import type { components } from "../../../build/schema";
import { compared, money, sum } from "../../lib/decimal";
import { meterTitle, shown } from "../../lib/meters";
import { type Stacks, stack } from "../../lib/stacks";

export type Usage = components["schemas"]["UsageBody"];
export type Item = Usage["items"][number];

/** What is summed: the cost of everything, or the quantity of one meter. */
export type What = { meter: string; unit: string; currency: string };

export function stacksOf(
  items: Item[],
  buckets: string[],
  what: What,
  by: "topic" | "meter",
): Stacks {
  const parts = items.map((item) => ({
    bucket: item.group,
    name: by === "meter" ? meterTitle(item.meter) : (item.topic ?? "–"),
    value: what.meter ? item.quantity : item.cost.amount,
  }));
  const text = (value: string) =>
    what.meter ? shown(what.meter, value, what.unit) : money(value, what.currency);
  return stack(parts, buckets, text);
}

/** Cost of each topic, the dearest first, with what it used of each meter. */
export type TopicSum = { name: string; id: string; cost: string; used: Map<string, Item> };

export function topicsOf(items: Item[]): TopicSum[] {
  const found = new Map<string, Item[]>();
  for (const item of items) {
    const id = item.topic_id ?? item.group;
    found.set(id, [...(found.get(id) ?? []), item]);
  }
  const topics = Array.from(found, ([id, of]) => ({
    id,
    name: of[0].group,
    cost: sum(of.map((item) => item.cost.amount)),
    used: new Map(of.map((item) => [item.meter, item])),
  }));
  return topics.sort((a, b) => compared(b.cost, a.cost) || (a.name < b.name ? -1 : 1));
}
