// What of a topic's page stands in its address: the tab, and where in the log messages begin.

export const TABS = ["messages", "partitions", "settings"] as const;
export const STARTS = ["latest", "earliest", "offset", "time"] as const;

export type TopicSearch = {
  tab?: (typeof TABS)[number];
  from?: (typeof STARTS)[number];
  p?: number;
  o?: string;
  t?: string;
};

export function topicSearch(given: Record<string, unknown>): TopicSearch {
  return {
    tab: TABS.find((tab) => tab === given.tab),
    from: STARTS.find((start) => start === given.from),
    p: Number.isInteger(given.p) ? (given.p as number) : undefined,
    o: /^[0-9]{1,19}$/.test(String(given.o)) ? String(given.o) : undefined,
    t: typeof given.t === "string" ? given.t : undefined,
  };
}
