// From single exact values to stacked series: the largest names each get a colour, the rest one.

import { compared, sum } from "./decimal";

export const SERIES_MAX = 8;

/** Steps of an axis: bytes are counted in powers of two, everything else in tens. */
export type Steps = "binary" | "decimal";

/** One colour of eight: its amounts for the picture, the same exactly for readers, their sum. */
export type Series = {
  name: string;
  colour: number;
  amounts: number[];
  texts: string[];
  total: string;
};

export const OTHERS = "Other";

/** One exact value, of a name, in a bucket. */
export type Part = { bucket: string; name: string; value: string };

export type Stacks = { series: Series[]; totals: string[]; total: string };

function groupedBy(parts: Part[], key: "bucket" | "name"): Map<string, Part[]> {
  const groups = new Map<string, Part[]>();
  for (const part of parts) {
    const group = groups.get(part[key]);
    if (group) group.push(part);
    else groups.set(part[key], [part]);
  }
  return groups;
}

const sumOf = (parts: Part[]) => sum(parts.map((part) => part.value));

/** Parts outside of `buckets` do not count. `order` keeps names in place and in their colours, so
that pictures beside each other agree; without it the largest is first. */
export function stack(
  parts: Part[],
  buckets: string[],
  text: (value: string) => string,
  order?: readonly string[],
): Stacks {
  const known = new Set(buckets);
  const used = parts.filter((part) => known.has(part.bucket));
  const rank = (name: string) => {
    const place = order ? order.indexOf(name) : 0;
    return place < 0 ? SERIES_MAX - 1 : place;
  };
  const names = Array.from(groupedBy(used, "name"), ([name, found]) => ({
    name,
    found,
    total: sumOf(found),
  }));
  names.sort(
    (a, b) =>
      rank(a.name) - rank(b.name) || compared(b.total, a.total) || (a.name < b.name ? -1 : 1),
  );
  // What is nothing gets no colour, unless there is nothing else.
  const worth = names.filter((each) => compared(each.total, "0") !== 0);
  const most = worth.length > 0 ? worth : names.slice(0, 1);
  // What has no name of its own comes last, however much it is.
  const named = most.filter((each) => each.name !== OTHERS);
  const unnamed = most.filter((each) => each.name === OTHERS);
  const room = SERIES_MAX - (unnamed.length > 0 || named.length > SERIES_MAX ? 1 : 0);
  const first = named.slice(0, room);
  const rest = [...named.slice(room), ...unnamed].flatMap((each) => each.found);
  const groups = first.map(({ name, found }) => ({ name, found }));
  if (rest.length > 0) groups.push({ name: OTHERS, found: rest });
  const exact = (found: Part[]) => {
    const byBucket = groupedBy(found, "bucket");
    return buckets.map((bucket) => sumOf(byBucket.get(bucket) ?? []));
  };
  return {
    series: groups.map(({ name, found }, index) => {
      const values = exact(found);
      return {
        name,
        colour: order ? Math.min(rank(name), SERIES_MAX - 1) : index,
        amounts: values.map(Number),
        texts: values.map(text),
        total: text(sumOf(found)),
      };
    }),
    totals: exact(used).map(text),
    total: text(sumOf(used)),
  };
}
