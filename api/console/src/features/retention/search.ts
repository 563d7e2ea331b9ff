// What of the retention page stands in its address.

export const TABS = ["overview", "topics", "violations", "holds"] as const;
export type Tab = (typeof TABS)[number];
export type RetentionSearch = { tab?: Tab };

export function retentionSearch(given: Record<string, unknown>): RetentionSearch {
  return { tab: TABS.find((tab) => tab === given.tab) };
}
