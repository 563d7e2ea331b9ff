// Releasing is for ever: the server says what would go, then the case is typed.

import { useQueryClient } from "@tanstack/react-query";
import { useAct } from "../../hooks/useAct";
import { usePlan } from "../../hooks/usePlan";
import { call } from "../../lib/client";
import { size } from "../../lib/format";
import { curl, python } from "../../lib/recipe";
import { ConfirmDialog } from "../../ui/ConfirmDialog";
import { type Hold, scopeOf } from "./hold";

function goes(bytes: string | undefined): string {
  if (bytes === undefined) return "what policies would have taken may go at once.";
  if (bytes === "0") return "nothing of it is due yet; from here on policies take it as it comes.";
  return `policies would have taken ${size(BigInt(bytes))}, which may go at once.`;
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
      title="Release the hold?"
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
