import { useQuery } from "@tanstack/react-query";
import { call, type Plan } from "../lib/client";

/** What the server would do if `path` were deleted as `etag` has it. Nothing is changed. */
export function usePlan(path: string, etag: string) {
  return useQuery({
    queryKey: ["plan", path, etag],
    queryFn: () => call<{ plan?: Plan }>("DELETE", `${path}?dry_run=true`, { etag }),
    retry: false,
  });
}
