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
      title={`Revoke API key ${shown.name}?`}
      word={shown.name}
      button="Revoke"
      act={revoke}
      recipe={recipe}
      onClose={onClose}
    >
      Requests with this key are rejected: by the API immediately, by the nodes within two seconds.
      The record of the key is kept, and its name can be reused.
    </ConfirmDialog>
  );
}
