import { Button } from "@patternfly/react-core";
import type { UseInfiniteQueryResult } from "@tanstack/react-query";

type MoreProps = {
  pages: Pick<UseInfiniteQueryResult, "hasNextPage" | "isFetchingNextPage" | "fetchNextPage">;
  children: string;
};

/** The button of the next page; nothing where there is none. */
export function More({ pages, children }: MoreProps) {
  if (!pages.hasNextPage) return null;
  return (
    <Button
      variant="link"
      isLoading={pages.isFetchingNextPage}
      onClick={() => pages.fetchNextPage()}
    >
      {children}
    </Button>
  );
}
