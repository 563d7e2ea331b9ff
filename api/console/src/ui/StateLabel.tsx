import { Button, Label, type LabelProps } from "@patternfly/react-core";
import { type ReactNode, useState } from "react";
import { Dialog } from "./Dialog";

type Props = {
  /** Whose state it is. */
  name: string;
  text: string;
  status: LabelProps["status"];
  title: string;
  size?: "small" | "medium";
  /** Why it is in this state. */
  children: ReactNode;
};

/** A state in a word, and a button that explains it. */
export function StateLabel({ name, text, status, title, size, children }: Props) {
  const [isOpen, setOpen] = useState(false);
  return (
    <span className="hr-state">
      <Label status={status}>{text}</Label>
      <Button
        variant="link"
        isInline
        onClick={() => setOpen(true)}
        aria-label={`Why is ${name} so?`}
      >
        Why?
      </Button>
      {isOpen && (
        <Dialog title={title} size={size} onClose={() => setOpen(false)}>
          {children}
        </Dialog>
      )}
    </span>
  );
}
