// The same act as code: a dialog with a recipe's lines, and a snippet that can be copied.

import { Button } from "@patternfly/react-core";
import { useState } from "react";
import { copied } from "../lib/clipboard";
import type { Recipe } from "../lib/recipe";
import { Dialog } from "./Dialog";

const LANGUAGES: [keyof Recipe, string][] = [
  ["cli", "CLI"],
  ["curl", "curl"],
  ["python", "Python"],
];

export function CopyAs({ recipe }: { recipe: Recipe }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button variant="link" onClick={() => setOpen(true)}>
        Copy as code
      </Button>
      {isOpen && (
        <Dialog title="Copy as code" size="medium" onClose={() => setOpen(false)}>
          {LANGUAGES.map(([language, title]) => (
            <Snippet key={language} title={title} code={recipe[language]} />
          ))}
        </Dialog>
      )}
    </>
  );
}

export function Snippet({ title, code }: { title: string; code: string }) {
  const [done, setDone] = useState<"Copied" | "Copy failed" | null>(null);
  const copy = async () => {
    setDone((await copied(code)) ? "Copied" : "Copy failed");
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
