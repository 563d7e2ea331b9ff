// A list that the server gives page by page: only the pages that the user requested, never all.

import { useInfiniteQuery } from "@tanstack/react-query";
import { call, type Page } from "../lib/client";

type Interval<Item> = number | false | ((items: Item[], asked: number) => number | false);

/** The pages of `path`, which has a query already. They are asked for again together. */
export function usePages<Item>(key: unknown[], path: string, interval: Interval<Item> = false) {
  const pages = useInfiniteQuery({
    queryKey: key,
    queryFn: ({ pageParam }) =>
      call<Page<Item>>(
        "GET",
        `${path}${pageParam && `&page_token=${encodeURIComponent(pageParam)}`}`,
      ),
    initialPageParam: "",
    getNextPageParam: (last) => last.next_page_token ?? undefined,
    refetchInterval: ({ state }) => {
      if (typeof interval !== "function") return interval;
      const items = state.data?.pages.flatMap((page) => page.items) ?? [];
      return interval(items, state.dataUpdateCount);
    },
  });
  return { ...pages, items: pages.data?.pages.flatMap((page) => page.items) ?? [] };
}
