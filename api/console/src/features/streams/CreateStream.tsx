import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useAct } from "../../hooks/useAct";
import { call } from "../../lib/client";
import { curl, python, shell } from "../../lib/recipe";
import { TextField } from "../../ui/Field";
import { FormDialog } from "../../ui/FormDialog";

export function CreateStream({ onClose }: { onClose: () => void }) {
  const queries = useQueryClient();
  const [name, setName] = useState("");
  const create = useAct({
    mutationFn: () => call("POST", "/v1/streams", { body: { name } }),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ["streams"] });
      onClose();
    },
  });
  const recipe = {
    cli: `headrace stream create ${shell(name || "NAME")}`,
    curl: curl("POST", "/v1/streams", { name: name || "NAME" }),
    python: python(`b.admin.create_stream(${JSON.stringify(name || "NAME")})`),
  };
  return (
    <FormDialog
      title="Create stream"
      submit="Create"
      isReady={name !== ""}
      act={create}
      recipe={recipe}
      onClose={onClose}
    >
      <TextField
        id="stream-name"
        label="Name"
        hint="Lowercase letters, digits and -. Example: billing"
        isRequired
        value={name}
        onChange={setName}
      />
    </FormDialog>
  );
}
