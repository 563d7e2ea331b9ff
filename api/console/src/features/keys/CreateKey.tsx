import {
  Alert,
  Button,
  Form,
  FormGroup,
  FormHelperText,
  FormSelect,
  FormSelectOption,
  HelperText,
  HelperTextItem,
  Modal,
  ModalBody,
  ModalFooter,
  ModalHeader,
  TextInput,
} from "@patternfly/react-core";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useAct } from "../../hooks/useAct";
import { type CreatedKey, call } from "../../lib/client";
import { curl, python, shell } from "../../lib/recipe";
import { CopyAs, Snippet } from "../../ui/CopyAs";
import { Problem } from "../../ui/Problem";

const ROLES = {
  editor: "editor: topics, and their messages, both ways",
  viewer: "viewer: reads everything, changes nothing",
  "billing-viewer": "billing-viewer: usage and cost alone",
  owner: "owner: also keys, projects and the audit",
};
const LIVES = { "30": "30 days", "": "90 days", "365": "a year", never: "never" };
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
  const told = name || "NAME";
  const rest = life || description ? "# description and end: by REST alone\n" : "";
  const recipe = {
    cli: `${rest}headrace key create ${shell(told)} --role ${role}`,
    curl: curl("POST", "/v1/api-keys", { ...body, name: told }),
    python: python(`print(b.admin.create_key(${JSON.stringify(told)}, role="${role}")["secret"])`),
  };
  return (
    <Modal isOpen onClose={onClose} variant="small" aria-label="Create key">
      <ModalHeader title="Create key" />
      <ModalBody>
        <Form
          id="create-key"
          onSubmit={(event) => {
            event.preventDefault();
            create.mutate();
          }}
        >
          {create.isError && <Problem error={create.error} />}
          <FormGroup label="Name" fieldId="key-name" isRequired>
            <TextInput
              id="key-name"
              isRequired
              value={name}
              onChange={(_, value) => setName(value)}
            />
            <FormHelperText>
              <HelperText>
                <HelperTextItem>
                  Lower-case letters, digits and -, such as billing-worker.
                </HelperTextItem>
              </HelperText>
            </FormHelperText>
          </FormGroup>
          <FormGroup label="Description" fieldId="key-description">
            <TextInput
              id="key-description"
              value={description}
              onChange={(_, value) => setDescription(value)}
            />
          </FormGroup>
          <FormGroup label="Role" fieldId="key-role">
            <FormSelect id="key-role" value={role} onChange={(_, value) => setRole(value)}>
              {Object.entries(ROLES).map(([value, label]) => (
                <FormSelectOption key={value} value={value} label={label} />
              ))}
            </FormSelect>
          </FormGroup>
          <FormGroup label="Ends after" fieldId="key-life">
            <FormSelect id="key-life" value={life} onChange={(_, value) => setLife(value)}>
              {Object.entries(LIVES).map(([value, label]) => (
                <FormSelectOption key={value} value={value} label={label} />
              ))}
            </FormSelect>
          </FormGroup>
        </Form>
      </ModalBody>
      <ModalFooter>
        <Button type="submit" form="create-key" isDisabled={!name} isLoading={create.isPending}>
          Create
        </Button>
        <Button variant="link" onClick={onClose}>
          Cancel
        </Button>
        <CopyAs recipe={recipe} />
      </ModalFooter>
    </Modal>
  );
}

function Shown({ made, onClose }: { made: CreatedKey; onClose: () => void }) {
  return (
    <Modal isOpen onClose={onClose} variant="medium" aria-label="The secret of the key">
      <ModalHeader title={`Key ${made.name} is made`} />
      <ModalBody>
        <div className="hr-stack">
          <Alert
            variant="warning"
            isInline
            component="h2"
            title="Keep the secret now: it is shown this once and kept nowhere"
          >
            Lost ones are replaced: revoke the key and create another.
          </Alert>
          <Snippet title="Secret" code={made.secret ?? ""} />
          <Snippet title="For a program" code={`export HEADRACE_KEY=${made.secret ?? ""}`} />
        </div>
      </ModalBody>
      <ModalFooter>
        <Button onClick={onClose}>I have kept it</Button>
      </ModalFooter>
    </Modal>
  );
}
