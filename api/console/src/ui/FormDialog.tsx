import { Button, Form } from "@patternfly/react-core";
import { type ReactNode, useId } from "react";
import type { Act } from "../hooks/useAct";
import type { Recipe } from "../lib/recipe";
import { CopyAs } from "./CopyAs";
import { Dialog } from "./Dialog";
import { Problem } from "./Problem";

type Props = {
  title: string;
  about?: string;
  /** The label of the submit button, and whether the form is valid. */
  submit: string;
  isReady?: boolean;
  cancel?: string;
  act: Act;
  recipe: Recipe;
  onClose: () => void;
  children: ReactNode;
};

/** A form in a dialog: its fields, what came of it, and the same as code. */
export function FormDialog(props: Props) {
  const { title, about, submit, isReady = true, cancel = "Cancel", act, recipe, onClose } = props;
  const id = useId();
  const footer = (
    <>
      <Button type="submit" form={id} isDisabled={!isReady} isLoading={act.isPending}>
        {submit}
      </Button>
      <Button variant="link" onClick={onClose}>
        {cancel}
      </Button>
      <CopyAs recipe={recipe} />
    </>
  );
  return (
    <Dialog title={title} about={about} footer={footer} onClose={onClose}>
      <Form
        id={id}
        onSubmit={(event) => {
          event.preventDefault();
          act.mutate();
        }}
      >
        {act.error && <Problem error={act.error} />}
        {props.children}
      </Form>
    </Dialog>
  );
}
