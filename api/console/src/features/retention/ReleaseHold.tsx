// Releasing is for ever: the server says what would go, then the case is typed.

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
import { useAct } from "../../hooks/useAct";
import { call, type Plan } from "../../lib/client";
import { size } from "../../lib/format";
import { curl, python } from "../../lib/recipe";
import { CopyAs } from "../../ui/CopyAs";
import { Problem } from "../../ui/Problem";
import { type Hold, scopeOf } from "./hold";

function goes(bytes: string | undefined): string {
  if (bytes === undefined) return "what policies would have taken may go at once.";
  if (bytes === "0") return "nothing of it is due yet; from here on policies take it as it comes.";
  return `policies would have taken ${size(BigInt(bytes))}, which may go at once.`;
}

export function ReleaseHold({ hold, onClose }: { hold: Hold; onClose: () => void }) {
  const queries = useQueryClient();
  const [typed, setTyped] = useState("");
  const path = `/v1/legal-holds/${hold.id}`;
  // The etag is of the hold as it was read here: a release of what another changed is refused.
  const { etag } = hold;
  const plan = useQuery({
    queryKey: ["plan", path, etag],
    queryFn: () => call<{ plan?: Plan }>("DELETE", `${path}?dry_run=true`, { etag }),
    retry: false,
  });
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
    <Modal isOpen onClose={onClose} variant="small" aria-label="Release the hold">
      <ModalHeader title="Release the hold?" titleIconVariant="warning" />
      <ModalBody>
        {plan.isPending && <Spinner aria-label="Planning" />}
        {plan.isError && <Problem error={plan.error} />}
        {release.isError && <Problem error={release.error} />}
        {plan.data && (
          <Form onSubmit={(event) => event.preventDefault()}>
            <Alert variant="warning" isInline title="This cannot be undone" component="h2">
              <p>
                {hold.topic}, {scopeOf(hold)}: {goes(loss?.bytes)}
              </p>
              {plan.data.plan?.warnings?.map((warning) => (
                <p key={warning}>{warning}</p>
              ))}
            </Alert>
            <FormGroup label={`Type ${hold.case_id} to confirm`} fieldId="confirm-release">
              <TextInput
                id="confirm-release"
                value={typed}
                onChange={(_, value) => setTyped(value)}
              />
            </FormGroup>
          </Form>
        )}
      </ModalBody>
      <ModalFooter>
        <Button
          variant="danger"
          isDisabled={!plan.data || typed !== hold.case_id}
          isLoading={release.isPending}
          onClick={() => release.mutate()}
        >
          Release
        </Button>
        <Button variant="link" onClick={onClose}>
          Cancel
        </Button>
        <CopyAs recipe={recipe} />
      </ModalFooter>
    </Modal>
  );
}
