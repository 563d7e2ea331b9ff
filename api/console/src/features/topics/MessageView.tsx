// One message in full: key, value as what it is or in hex, headers, times, and its permalink.

import {
  Button,
  Card,
  CardBody,
  CardHeader,
  CardTitle,
  DescriptionList,
  DescriptionListDescription,
  DescriptionListGroup,
  DescriptionListTerm,
  ToggleGroup,
  ToggleGroupItem,
} from "@patternfly/react-core";
import { useState } from "react";
import type { Message, Topic } from "../../lib/client";
import { copied } from "../../lib/clipboard";
import { moment, size } from "../../lib/format";
import { bytesOf, decoded, hexDump, textOf } from "../../lib/payload";

type Props = { topic: Topic; message: Message; onClose: () => void };

export function MessageView({ topic, message, onClose }: Props) {
  const [hex, setHex] = useState(false);
  const [done, setDone] = useState("");
  const value = decoded(message.value);
  const place = `tab=messages&from=offset&p=${message.partition}&o=${message.offset}`;
  const link = `${location.origin}/console/topics/${topic.id}?${place}`;
  const copy = async (what: string, text: string) => {
    setDone((await copied(text)) ? `${what} copied` : "Copy failed");
  };
  const actions = (
    <>
      <span className="hr-muted" role="status">
        {done}
      </span>
      <Button variant="link" onClick={() => copy("Link", link)}>
        Copy link
      </Button>
      <Button variant="link" onClick={() => copy("Value", textOf(message.value))}>
        Copy value
      </Button>
      <Button variant="link" onClick={() => copy("JSON", JSON.stringify(message, null, 2))}>
        Copy as JSON
      </Button>
      <Button variant="plain" aria-label="Close message" onClick={onClose}>
        ✕
      </Button>
    </>
  );
  return (
    <Card variant="secondary" component="section" aria-label="Message">
      <CardHeader actions={{ actions }}>
        <CardTitle component="h2">
          Partition {message.partition}, offset {message.offset}
        </CardTitle>
      </CardHeader>
      <CardBody>
        <DescriptionList isHorizontal isCompact>
          <Row term="Appended">{`${moment(message.append_time)} UTC`}</Row>
          <Row term="Sent">{`${moment(message.timestamp)} UTC`}</Row>
          <Row term="Key">{hex ? hexDump(message.key) : decoded(message.key).text}</Row>
          {message.headers.map((header, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: keys of headers may repeat.
            <Row key={index} term={`Header ${header.key}`}>
              {hex ? hexDump(header.value) : decoded(header.value).text}
            </Row>
          ))}
        </DescriptionList>
        <br />
        <ToggleGroup aria-label="Value format" isCompact>
          <ToggleGroupItem text={value.kind} isSelected={!hex} onChange={() => setHex(false)} />
          <ToggleGroupItem text="hex" isSelected={hex} onChange={() => setHex(true)} />
        </ToggleGroup>
        <p className="hr-muted">
          {value.kind === "null"
            ? "No value (tombstone)"
            : size(bytesOf(message.value ?? "").length)}
          {value.kind === "binary" && " · not UTF-8, shown as hex"}
        </p>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys. */}
        <pre className={`hr-code${hex ? " hr-hex" : ""}`} tabIndex={0}>
          {hex ? hexDump(message.value) : value.text}
        </pre>
      </CardBody>
    </Card>
  );
}

function Row({ term, children }: { term: string; children: string }) {
  return (
    <DescriptionListGroup>
      <DescriptionListTerm>{term}</DescriptionListTerm>
      <DescriptionListDescription className="hr-mono">{children}</DescriptionListDescription>
    </DescriptionListGroup>
  );
}
