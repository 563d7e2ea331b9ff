import { Alert, TextArea } from "@patternfly/react-core";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useAct } from "../../hooks/useAct";
import { call, type Topic } from "../../lib/client";
import { base64Of } from "../../lib/payload";
import { curl, python, shell } from "../../lib/recipe";
import { Field, TextField } from "../../ui/Field";
import { FormDialog } from "../../ui/FormDialog";

type Header = { key: string; value: string };
type Published = { partition: number; offset: string };

/** One line a header: `name: value`. */
function headersOf(text: string): Header[] {
  return text
    .split("\n")
    .filter((line) => line.trim())
    .map((line) => {
      const at = line.indexOf(":");
      if (at < 0) return { key: line.trim(), value: "" };
      return { key: line.slice(0, at).trim(), value: line.slice(at + 1).trim() };
    });
}

export function Publish({ topic, onClose }: { topic: Topic; onClose: () => void }) {
  const queries = useQueryClient();
  const [key, setKey] = useState("");
  const [value, setValue] = useState('{"hello": "world"}');
  const [headers, setHeaders] = useState("");
  const path = `/v1/topics/${topic.id}/messages`;
  const pairs = headersOf(headers);
  const body = {
    ...(key && { key: base64Of(key) }),
    value: base64Of(value),
    headers: pairs.map((each) => ({ key: each.key, value: base64Of(each.value) })),
  };
  const publish = useAct({
    mutationFn: () => call<Published>("POST", path, { body }),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["messages", topic.id] }),
  });
  const name = `${topic.stream}/${topic.name}`;
  const flags = pairs.map((each) => ` -H ${shell(`${each.key}:${each.value}`)}`).join("");
  const keyFlag = key && ` -k ${shell(key)}`;
  const keyWord = key && `, key=${JSON.stringify(key)}`;
  const named = pairs.map((each) => `(${JSON.stringify(each.key)}, ${JSON.stringify(each.value)})`);
  const headersWord = named.length > 0 ? `, headers=[${named.join(", ")}]` : "";
  // A line is a message: a value of many lines goes as an envelope, in which it is one.
  const envelope = JSON.stringify({
    ...(key && { key }),
    value,
    headers: pairs.map((each) => [each.key, each.value]),
  });
  const cli = value.includes("\n")
    ? `printf '%s\\n' ${shell(envelope)} | headrace produce ${shell(name)} -i jsonl`
    : `printf '%s\\n' ${shell(value)} | headrace produce ${shell(name)}${keyFlag}${flags}`;
  const words = `${JSON.stringify(value)}${keyWord}${headersWord}`;
  const recipe = {
    cli,
    curl: curl("POST", path, body),
    python: python(`b.topic(${JSON.stringify(name)}).send(${words})`),
  };
  return (
    <FormDialog
      title="Publish message"
      about={`Consumers of ${name} will receive it.`}
      submit="Publish"
      cancel="Close"
      act={publish}
      recipe={recipe}
      onClose={onClose}
    >
      {publish.data && (
        <Alert variant="success" isInline title="Message published" component="h2">
          Partition {publish.data.partition}, offset {publish.data.offset}.
        </Alert>
      )}
      <TextField
        id="key"
        label="Key"
        hint="Messages with the same key stay in order. Without a key, a partition is chosen automatically."
        value={key}
        onChange={setKey}
      />
      <Field id="value" label="Value">
        <TextArea id="value" rows={5} value={value} onChange={(_, text) => setValue(text)} />
      </Field>
      <Field id="headers" label="Headers" hint="One per line: name: value">
        <TextArea id="headers" rows={2} value={headers} onChange={(_, text) => setHeaders(text)} />
      </Field>
    </FormDialog>
  );
}
