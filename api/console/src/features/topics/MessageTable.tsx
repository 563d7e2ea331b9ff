import { Button } from "@patternfly/react-core";
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { Fragment, type ReactNode } from "react";
import type { Message } from "../../lib/client";
import { moment } from "../../lib/format";
import { decoded } from "../../lib/payload";

const SHOWN_CHARACTERS = 300;

type Props = {
  messages: Message[];
  chosen: string | null;
  keyOf: (message: Message) => string;
  onChoose: (message: Message) => void;
  children: ReactNode;
};

function short(base64: string | null | undefined): string {
  return decoded(base64).raw.replaceAll(/\s+/g, " ").slice(0, SHOWN_CHARACTERS);
}

export function MessageTable({ messages, chosen, keyOf, onChoose, children }: Props) {
  return (
    <Table aria-label="Messages" variant="compact">
      <Thead>
        <Tr>
          <Th className="hr-place">Position</Th>
          <Th className="hr-time">Appended (UTC)</Th>
          <Th className="hr-key">Key</Th>
          <Th>Value</Th>
          <Th className="hr-number hr-count">Headers</Th>
        </Tr>
      </Thead>
      <Tbody>
        {messages.map((message) => {
          const key = keyOf(message);
          return (
            <Fragment key={key}>
              <Tr
                className={key === chosen ? "hr-chosen" : undefined}
                isClickable
                onRowClick={() => onChoose(message)}
              >
                <Td dataLabel="Position">
                  <Button
                    variant="link"
                    isInline
                    aria-label={`${key}, partition ${message.partition}, offset ${message.offset}`}
                    aria-pressed={key === chosen}
                    onClick={(event) => {
                      event.stopPropagation();
                      onChoose(message);
                    }}
                  >
                    {key}
                  </Button>
                </Td>
                <Td dataLabel="Appended (UTC)">
                  <span className="hr-mono hr-nowrap">{moment(message.append_time)}</span>
                </Td>
                <Td dataLabel="Key">
                  <span className="hr-clip hr-mono">{short(message.key)}</span>
                </Td>
                <Td dataLabel="Value">
                  <span className="hr-clip hr-mono">{short(message.value)}</span>
                </Td>
                <Td dataLabel="Headers" className="hr-number">
                  {message.headers.length}
                </Td>
              </Tr>
              {key === chosen && (
                <Tr>
                  <Td colSpan={5} noPadding>
                    {children}
                  </Td>
                </Tr>
              )}
            </Fragment>
          );
        })}
      </Tbody>
    </Table>
  );
}
