// Deleting is planned first: the server says what would be lost, then the name is typed.

import {
  Alert,
  Button,
  Form,
  FormGroup,
  Modal,
  ModalBody,
  ModalFooter,
  ModalHeader,
  Spinner,
  TextInput,
} from "@patternfly/react-core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useAct } from "../hooks/useAct";
import { ApiError, call, type Plan, type Topic } from "../lib/client";
import { count, held, size } from "../lib/format";
import { curl, python, shell } from "../lib/recipe";
import { CopyAs } from "./CopyAs";
import { Problem } from "./Problem";

type Props = {
  kind: "topic" | "stream";
  path: string;
  name: string;
  etag: string;
  onClose: () => void;
  onDone: () => void;
};

function lossOf(plan: Plan | undefined): { records: bigint; bytes: bigint } | null {
  const loss = plan?.data_loss;
  return loss ? { records: BigInt(loss.records), bytes: BigInt(loss.bytes) } : null;
}

function hintOf(error: Error, cli: string): string | undefined {
  if (!(error instanceof ApiError)) return undefined;
  const { code } = error.problem;
  if (code === "DELETION_PROTECTED") return "Untick “Protect from deletion” in its settings first.";
  if (code !== "CHILDREN_EXIST") return undefined;
  return `Delete its topics first. From a shell they may go with it: ${cli} --cascade`;
}

export function DeleteDialog({ kind, path, name, etag, onClose, onDone }: Props) {
  const queries = useQueryClient();
  const [typed, setTyped] = useState("");
  const plan = useQuery({
    queryKey: ["plan", path, etag],
    queryFn: () => call<{ plan?: Plan }>("DELETE", `${path}?dry_run=true`, { etag }),
    retry: false,
  });
  const remove = useAct({
    mutationFn: () => call("DELETE", path, { etag }),
    onSuccess: async () => {
      await queries.invalidateQueries();
      onDone();
    },
  });
  // The plan counts what was observed last; a topic is asked for what it holds now.
  const now = useQuery({
    queryKey: ["loss", path],
    queryFn: () => call<Topic>("GET", `${path}?live=true`),
    enabled: kind === "topic",
  });
  const holds = now.data ? held(now.data.status.partitions) : null;
  const loss = holds ?? lossOf(plan.data?.plan);
  const recipe = {
    cli: `headrace ${kind} delete ${shell(name)}`,
    curl: curl("DELETE", path, undefined, etag),
    python: python(`b.admin.delete("${kind}", b.admin.object("${kind}", ${JSON.stringify(name)}))`),
  };
  return (
    <Modal isOpen onClose={onClose} variant="small" aria-label={`Delete ${name}`}>
      <ModalHeader title={`Delete ${kind} ${name}?`} titleIconVariant="warning" />
      <ModalBody>
        {plan.isPending && <Spinner aria-label="Planning" />}
        {plan.isError && <Problem error={plan.error} hint={hintOf(plan.error, recipe.cli)} />}
        {remove.isError && <Problem error={remove.error} />}
        {plan.data && (
          <Form onSubmit={(event) => event.preventDefault()}>
            <Alert variant="warning" isInline title="This cannot be undone" component="h2">
              {loss
                ? `${count(loss.records)} records (${size(loss.bytes)}) go for ever.`
                : "What it holds goes for ever."}{" "}
              Writes are refused from here on; its name is free again once it is gone.
            </Alert>
            <FormGroup label={`Type ${name} to confirm`} fieldId="confirm">
              <TextInput id="confirm" value={typed} onChange={(_, value) => setTyped(value)} />
            </FormGroup>
          </Form>
        )}
      </ModalBody>
      <ModalFooter>
        <Button
          variant="danger"
          isDisabled={!plan.data || typed !== name}
          isLoading={remove.isPending}
          onClick={() => remove.mutate()}
        >
          Delete
        </Button>
        <Button variant="link" onClick={onClose}>
          Cancel
        </Button>
        <CopyAs recipe={recipe} />
      </ModalFooter>
    </Modal>
  );
}
