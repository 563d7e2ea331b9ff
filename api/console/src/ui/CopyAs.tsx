// The same act as a line of the CLI, a curl, or Python. What is quoted, is quoted for its language.

import { Button, Modal, ModalBody, ModalHeader } from "@patternfly/react-core";
import { useState } from "react";
import { copied } from "../lib/clipboard";

export type Recipe = { cli: string; curl: string; python: string };

export function shell(text: string): string {
  return /^[A-Za-z0-9_./:=@-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

export function curl(method: string, path: string, body?: unknown, etag?: string): string {
  const lines = [`curl -sS -X ${method} ${shell(location.origin + path)}`];
  lines.push(`-H "Authorization: Bearer $HEADRACE_KEY"`);
  if (etag) lines.push(`-H 'If-Match: "${etag}"'`);
  if (body !== undefined) {
    const type = method === "PATCH" ? "application/merge-patch+json" : "application/json";
    lines.push(`-H 'Content-Type: ${type}'`, `-d ${shell(JSON.stringify(body))}`);
  }
  return lines.join(" \\\n  ");
}

export function python(body: string): string {
  return `import headrace\nwith headrace.connect() as b:\n    ${body}`;
}

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
