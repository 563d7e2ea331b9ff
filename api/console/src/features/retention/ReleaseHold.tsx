// A release cannot be undone: the server says what would be deleted, then the case is typed.

import { useQueryClient } from "@tanstack/react-query";
import { useAct } from "../../hooks/useAct";
import { usePlan } from "../../hooks/usePlan";
import { call } from "../../lib/client";
import { size } from "../../lib/format";
import { curl, python } from "../../lib/recipe";
import { ConfirmDialog } from "../../ui/ConfirmDialog";
import { type Hold, scopeOf } from "./hold";

function goes(bytes: string | undefined): string {
  if (bytes === undefined)
    return "data that retention would have deleted may be deleted immediately.";
  if (bytes === "0") return "nothing is due for deletion yet; retention applies from now on.";
  return `retention would have deleted ${size(BigInt(bytes))}, which may be deleted immediately.`;
}

export function ReleaseHold({ hold, onClose }: { hold: Hold; onClose: () => void }) {
  const queries = useQueryClient();
  const path = `/v1/legal-holds/${hold.id}`;
  // The etag is of the hold as it was read here: a release of what another changed is refused.
  const { etag } = hold;
  const plan = usePlan(path, etag);
  const release = useAct({
    mutationFn: () => call("DELETE", path, { etag }),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ["holds"] });
      onClose();
    },
  });
  const recipe = {
    cli: `headrace hold release ${hold.id}`,
    curl: curl("DELETE", path, undefined, etag),
    python: python(`b.admin.release_hold(b.admin.hold("${hold.id}"))`),
  };
  const loss = plan.data?.plan?.data_loss;
  return (
    <ConfirmDialog
      title="Release legal hold?"
      word={hold.case_id}
      button="Release"
      act={release}
      plan={plan}
      recipe={recipe}
      onClose={onClose}
    >
      <p>
        {hold.topic}, {scopeOf(hold)}: {goes(loss?.bytes)}
      </p>
      {plan.data?.plan?.warnings?.map((warning) => (
        <p key={warning}>{warning}</p>
      ))}
    </ConfirmDialog>
  );
}
