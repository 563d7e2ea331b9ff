import { useQueryClient } from "@tanstack/react-query";
import { useAct } from "../../hooks/useAct";
import { type ApiKey, call } from "../../lib/client";
import { curl, python, shell } from "../../lib/recipe";
import { ConfirmDialog } from "../../ui/ConfirmDialog";

/** What uses the key stops working, so its name is typed. */
export function RevokeKey({ shown, onClose }: { shown: ApiKey; onClose: () => void }) {
  const queries = useQueryClient();
  const path = `/v1/api-keys/${shown.id}`;
  const revoke = useAct({
    mutationFn: () => call("DELETE", path, { etag: shown.etag }),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ["keys"] });
      onClose();
    },
  });
  const recipe = {
    cli: `headrace key revoke ${shell(shown.name)}`,
    curl: curl("DELETE", path, undefined, shown.etag),
    python: python(`b.admin.delete("key", b.admin.object("key", ${JSON.stringify(shown.name)}))`),
  };
  return (
    <ConfirmDialog
      title={`Revoke key ${shown.name}?`}
      word={shown.name}
      button="Revoke"
      act={revoke}
      recipe={recipe}
      onClose={onClose}
    >
      Whatever uses it is refused: here at once, on the nodes within a second or two. Its record
      stays, and its name is free again.
    </ConfirmDialog>
  );
}
