// Who is signed in, and what they may do. What one reader was shown, the next one never sees.

import { type Query, type QueryClient, useQuery, useQueryClient } from "@tanstack/react-query";
import { type Session, session } from "../lib/client";

const KEY = ["session"];

/** Clears the cache if another user was signed in before. */
function forget(queries: QueryClient, who: Session | null): void {
  const before = queries.getQueryData<Session | null>(KEY);
  if (before?.principal_id === who?.principal_id) return;
  const others = { predicate: (query: Query) => query.queryKey[0] !== KEY[0] };
  // Refetch the data on the page, unless the session has ended.
  if (who) queries.resetQueries(others);
  else queries.removeQueries(others);
}

/** Set the signed-in user; null after signing out. */
export function enter(queries: QueryClient, who: Session | null): void {
  forget(queries, who);
  queries.setQueryData(KEY, who);
}

/** Asks again who is signed in: the session has ended, or another one began in another tab. */
export function askAgain(queries: QueryClient): void {
  queries.invalidateQueries({ queryKey: KEY });
}

export function useSession() {
  const queries = useQueryClient();
  return useQuery({
    queryKey: KEY,
    queryFn: async () => {
      const found = await session();
      forget(queries, found);
      return found;
    },
    staleTime: 60_000,
    refetchOnWindowFocus: true,
  });
}

/** Whether who is signed in may do this, such as `topics:create`. */
export function useMay(permission: string): boolean {
  return useSession().data?.permissions.includes(permission) === true;
}
