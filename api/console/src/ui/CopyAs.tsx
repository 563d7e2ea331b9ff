// The same act as code: a dialog with a recipe's lines, and a snippet that can be copied.

import { Button, Modal, ModalBody, ModalHeader } from "@patternfly/react-core";
import { useState } from "react";
import { copied } from "../lib/clipboard";
import type { Recipe } from "../lib/recipe";

const LANGUAGES: [keyof Recipe, string][] = [
  ["cli", "CLI"],
  ["curl", "curl"],
  ["python", "Python"],
];

export function CopyAs({ recipe }: { recipe: Recipe }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <Button variant="link" onClick={() => setOpen(true)}>
        Copy as code
      </Button>
      <Modal
        isOpen={open}
        onClose={() => setOpen(false)}
        variant="medium"
        aria-label="Copy as code"
      >
        <ModalHeader title="The same, as code" />
        <ModalBody>
          {LANGUAGES.map(([language, title]) => (
            <Snippet key={language} title={title} code={recipe[language]} />
          ))}
        </ModalBody>
      </Modal>
    </>
  );
}

export function Snippet({ title, code }: { title: string; code: string }) {
  const [done, setDone] = useState<"Copied" | "Not copied: select it" | null>(null);
  const copy = async () => {
    setDone((await copied(code)) ? "Copied" : "Not copied: select it");
  };
  return (
    <figure className="hr-snippet">
      <figcaption>
        {title}
        <Button variant="link" size="sm" aria-label={`${done ?? "Copy"} ${title}`} onClick={copy}>
          {done ?? "Copy"}
        </Button>
      </figcaption>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys. */}
      <pre className="hr-code" tabIndex={0}>
        {code}
      </pre>
    </figure>
  );
}
