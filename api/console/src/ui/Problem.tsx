import { Alert } from "@patternfly/react-core";
import { ApiError } from "../lib/client";

/** What went wrong, why, what to do next, and the id to look for in the log. `hint`: what to do
next from here, where the API's own speaks to whoever sends requests. */
export function Problem({ error, hint }: { error: unknown; hint?: string }) {
  const problem = error instanceof ApiError ? error.problem : {};
  const text = error instanceof Error ? error.message : String(error);
  return (
    <Alert variant="danger" isInline title={problem.title ?? "Request failed"} component="h2">
      <p>{text}</p>
      {(hint ?? problem.hint) && <p>{hint ?? problem.hint}</p>}
      {problem.code && (
        <p className="hr-mono hr-muted">
          {problem.code} {problem.request_id}
        </p>
      )}
    </Alert>
  );
}
