import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { call } from "../lib/client";
import type { Kind, ReportRun } from "../lib/reports";
import { useAct } from "./useAct";

/** Starts a run and shows it. */
export function useStartReport() {
  const queries = useQueryClient();
  const navigate = useNavigate();
  return useAct({
    mutationFn: (kind: Kind) => call<ReportRun>("POST", "/v1/report-runs", { body: { kind } }),
    onSuccess: async (run) => {
      await queries.invalidateQueries({ queryKey: ["report-runs"] });
      navigate({ to: "/reports/$runId", params: { runId: run.id } });
    },
  });
}
