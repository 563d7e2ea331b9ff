import {
  Alert,
  Button,
  Form,
  FormGroup,
  Modal,
  ModalBody,
  ModalFooter,
  ModalHeader,
  TextInput,
} from "@patternfly/react-core";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useAct } from "../../hooks/useAct";
import { type ApiKey, call } from "../../lib/client";
import { curl, python, shell } from "../../lib/recipe";
import { CopyAs } from "../../ui/CopyAs";
import { Problem } from "../../ui/Problem";

/** What uses the key stops working, so its name is typed. */
export function RevokeKey({ shown, onClose }: { shown: ApiKey; onClose: () => void }) {
  const queries = useQueryClient();
  const [typed, setTyped] = useState("");
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
    <Modal isOpen onClose={onClose} variant="small" aria-label={`Revoke ${shown.name}`}>
      <ModalHeader title={`Revoke key ${shown.name}?`} titleIconVariant="warning" />
      <ModalBody>
        {revoke.isError && <Problem error={revoke.error} />}
        <Form onSubmit={(event) => event.preventDefault()}>
          <Alert variant="warning" isInline title="This cannot be undone" component="h2">
            Whatever uses it is refused: here at once, on the nodes within a second or two. Its
            record stays, and its name is free again.
          </Alert>
          <FormGroup label={`Type ${shown.name} to confirm`} fieldId="confirm">
            <TextInput id="confirm" value={typed} onChange={(_, value) => setTyped(value)} />
          </FormGroup>
        </Form>
      </ModalBody>
      <ModalFooter>
        <Button
          variant="danger"
          isDisabled={typed !== shown.name}
          isLoading={revoke.isPending}
          onClick={() => revoke.mutate()}
        >
          Revoke
        </Button>
        <Button variant="link" onClick={onClose}>
          Cancel
        </Button>
        <CopyAs recipe={recipe} />
      </ModalFooter>
    </Modal>
  );
}
