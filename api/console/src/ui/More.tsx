import { Button } from "@patternfly/react-core";
import type { UseInfiniteQueryResult } from "@tanstack/react-query";

export type Pages = Pick<
  UseInfiniteQueryResult,
  "hasNextPage" | "isFetchingNextPage" | "fetchNextPage"
>;

/** The button of the next page; nothing where there is none. */
export function More({ pages }: { pages: Pages }) {
  if (!pages.hasNextPage) return null;
  return (
    <Button
      variant="link"
      isLoading={pages.isFetchingNextPage}
      onClick={() => pages.fetchNextPage()}
    >
      Load more
    </Button>
  );
}
