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
  /** What the state means, or how it came about. */
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
        aria-label={`Explain the state of ${name}`}
      >
        Explain
      </Button>
      {isOpen && (
        <Dialog title={title} size={size} onClose={() => setOpen(false)}>
          {children}
        </Dialog>
      )}
    </span>
  );
}
