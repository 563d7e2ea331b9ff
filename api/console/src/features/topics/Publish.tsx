import {
  Alert,
  Button,
  Form,
  FormGroup,
  Modal,
  ModalBody,
  ModalFooter,
  ModalHeader,
  TextArea,
  TextInput,
} from "@patternfly/react-core";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useAct } from "../../hooks/useAct";
import { call, type Topic } from "../../lib/client";
import { base64Of } from "../../lib/payload";
import { curl, python, shell } from "../../lib/recipe";
import { CopyAs } from "../../ui/CopyAs";
import { Hint } from "../../ui/Hint";
import { Problem } from "../../ui/Problem";

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
    <Modal isOpen onClose={onClose} variant="small" aria-label="Publish a message">
      <ModalHeader title="Publish a message" description={`Readers of ${name} will see it.`} />
      <ModalBody>
        <Form
          id="publish"
          onSubmit={(event) => {
            event.preventDefault();
            publish.mutate();
          }}
        >
          {publish.isError && <Problem error={publish.error} />}
          {publish.data && (
            <Alert variant="success" isInline title="It is stored" component="h2">
              Partition {publish.data.partition}, offset {publish.data.offset}.
            </Alert>
          )}
          <FormGroup label="Key" fieldId="key">
            <TextInput id="key" value={key} onChange={(_, text) => setKey(text)} />
            <Hint>Messages of one key stay in order. Without one any partition will do.</Hint>
          </FormGroup>
          <FormGroup label="Value" fieldId="value">
            <TextArea id="value" rows={5} value={value} onChange={(_, text) => setValue(text)} />
          </FormGroup>
          <FormGroup label="Headers" fieldId="headers">
            <TextArea
              id="headers"
              rows={2}
              value={headers}
              onChange={(_, text) => setHeaders(text)}
            />
            <Hint>One a line, as name: value.</Hint>
          </FormGroup>
        </Form>
      </ModalBody>
      <ModalFooter>
        <Button type="submit" form="publish" isLoading={publish.isPending}>
          Publish
        </Button>
        <Button variant="link" onClick={onClose}>
          Close
        </Button>
        <CopyAs recipe={recipe} />
      </ModalFooter>
    </Modal>
  );
}
