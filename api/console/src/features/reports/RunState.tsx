import { Label } from "@patternfly/react-core";
import type { ReportRun } from "../../lib/reports";
import { resultOf } from "./run";

export function RunState({ run }: { run: ReportRun }) {
  if (resultOf(run)?.supersededBy) return <Label status="warning">Superseded</Label>;
  if (run.state === "SUCCEEDED") return <Label status="success">Succeeded</Label>;
  if (run.state === "FAILED") return <Label status="danger">Failed</Label>;
  return <Label status="info">{run.state === "RUNNING" ? "Running" : "Queued"}</Label>;
}
