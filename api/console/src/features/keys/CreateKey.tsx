import { Alert, Button } from "@patternfly/react-core";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useAct } from "../../hooks/useAct";
import { type CreatedKey, call } from "../../lib/client";
import { curl, python, shell } from "../../lib/recipe";
import { Snippet } from "../../ui/CopyAs";
import { Dialog } from "../../ui/Dialog";
import { SelectField, TextField } from "../../ui/Field";
import { FormDialog } from "../../ui/FormDialog";

const ROLES: [string, string][] = [
  ["editor", "editor: manage topics, publish and read messages"],
  ["viewer", "viewer: read-only access"],
  ["billing-viewer", "billing-viewer: usage and cost only"],
  ["owner", "owner: full access, including keys, projects and the audit log"],
];
/** Days that a key lasts; without any, as long as the API says. */
const LIVES: [string, string][] = [
  ["30", "30 days"],
  ["", "90 days"],
  ["365", "1 year"],
  ["never", "Never"],
];
const DAY_MS = 86_400_000;

/** A key is made and its secret shown, this once. */
export function CreateKey({ onClose }: { onClose: () => void }) {
  const queries = useQueryClient();
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const [role, setRole] = useState("editor");
  const [life, setLife] = useState("");
  const ends =
    life === "never" || life === ""
      ? life
      : new Date(Date.now() + Number(life) * DAY_MS).toISOString();
  const body = {
    name,
    ...(description && { display_name: description }),
    spec: { role, ...(ends && { expires_at: ends }) },
  };
  const create = useAct({
    mutationFn: () => call<CreatedKey>("POST", "/v1/api-keys", { body }),
    // The secret is in this window and nowhere else: not in the cache, not in the browser's store.
    gcTime: 0,
    onSuccess: () => queries.invalidateQueries({ queryKey: ["keys"] }),
  });
  if (create.data) return <Shown made={create.data} onClose={onClose} />;
  const shown = name || "NAME";
  const rest = life || description ? "# description and expiry: REST only\n" : "";
  const recipe = {
    cli: `${rest}headrace key create ${shell(shown)} --role ${role}`,
    curl: curl("POST", "/v1/api-keys", { ...body, name: shown }),
    python: python(`print(b.admin.create_key(${JSON.stringify(shown)}, role="${role}")["secret"])`),
  };
  return (
    <FormDialog
      title="Create API key"
      submit="Create"
      isReady={name !== ""}
      act={create}
      recipe={recipe}
      onClose={onClose}
    >
      <TextField
        id="key-name"
        label="Name"
        hint="Lowercase letters, digits and -. Example: billing-worker"
        isRequired
        value={name}
        onChange={setName}
      />
      <TextField
        id="key-description"
        label="Description"
        value={description}
        onChange={setDescription}
      />
      <SelectField id="key-role" label="Role" value={role} onChange={setRole} options={ROLES} />
      <SelectField
        id="key-life"
        label="Expires after"
        value={life}
        onChange={setLife}
        options={LIVES}
      />
    </FormDialog>
  );
}

function Shown({ made, onClose }: { made: CreatedKey; onClose: () => void }) {
  return (
    <Dialog
      title={`API key ${made.name} created`}
      size="medium"
      footer={<Button onClick={onClose}>I have copied the secret</Button>}
      onClose={onClose}
    >
      <div className="hr-stack">
        <Alert
          variant="warning"
          isInline
          component="h2"
          title="Copy the secret now. It is shown only once."
        >
          If you lose it, revoke the key and create another.
        </Alert>
        <Snippet title="Secret" code={made.secret ?? ""} />
        <Snippet title="Environment variable" code={`export HEADRACE_KEY=${made.secret ?? ""}`} />
      </div>
    </Dialog>
  );
}
