import { Alert } from "@patternfly/react-core";
import { ApiError } from "../lib/client";

/** The error, its cause, what to do next, and the request id for the log. `hint` replaces the hint
of the API, which is written for developers of clients. */
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
