import { Alert, Button, Form, Spinner } from "@patternfly/react-core";
import { type ReactNode, useState } from "react";
import type { Act } from "../hooks/useAct";
import type { Recipe } from "../lib/recipe";
import { CopyAs } from "./CopyAs";
import { Dialog } from "./Dialog";
import { TextField } from "./Field";
import { Problem } from "./Problem";

type Props = {
  title: string;
  /** What is typed before the button works. */
  word: string;
  button: string;
  act: Act;
  /** What the server would do, asked before anything is typed. `hint`: what to do if it refuses. */
  plan?: { isPending: boolean; error: Error | null; hint?: string };
  recipe: Recipe;
  onClose: () => void;
  /** What is lost. */
  children: ReactNode;
};

/** What cannot be undone: the server plans it first, then a name is typed. */
export function ConfirmDialog(props: Props) {
  const { title, word, button, act, plan, recipe, onClose, children } = props;
  const [typed, setTyped] = useState("");
  const isPlanned = !plan?.isPending && !plan?.error;
  const footer = (
    <>
      <Button
        variant="danger"
        isDisabled={!isPlanned || typed !== word}
        isLoading={act.isPending}
        onClick={act.mutate}
      >
        {button}
      </Button>
      <Button variant="link" onClick={onClose}>
        Cancel
      </Button>
      <CopyAs recipe={recipe} />
    </>
  );
  return (
    <Dialog title={title} icon="warning" footer={footer} onClose={onClose}>
      {plan?.isPending && <Spinner aria-label="Loading" />}
      {plan?.error && <Problem error={plan.error} hint={plan.hint} />}
      {act.error && <Problem error={act.error} />}
      {isPlanned && (
        <Form onSubmit={(event) => event.preventDefault()}>
          <Alert variant="warning" isInline title="This cannot be undone" component="h2">
            {children}
          </Alert>
          <TextField
            id="confirm"
            label={`Type ${word} to confirm`}
            value={typed}
            onChange={setTyped}
          />
        </Form>
      )}
    </Dialog>
  );
}
