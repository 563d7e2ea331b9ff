// The keyboard: where a key leads, and the sheet that says so. Keys mean nothing while one types.

import {
  Button,
  DescriptionList,
  DescriptionListDescription,
  DescriptionListGroup,
  DescriptionListTerm,
  Modal,
  ModalBody,
  ModalHeader,
} from "@patternfly/react-core";
import { useNavigate } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";

const PLACES = {
  h: ["/", "Home"],
  t: ["/topics", "Topics"],
  s: ["/streams", "Streams"],
  g: ["/groups", "Groups"],
  u: ["/usage", "Usage and cost"],
  i: ["/invoices", "Invoices"],
  r: ["/retention", "Retention"],
  e: ["/reports", "Reports"],
  o: ["/operations", "Operations"],
  n: ["/nodes", "Nodes"],
  k: ["/keys", "API keys"],
} as const;

const SHEET = [
  ...Object.entries(PLACES).map(([key, [, title]]) => [`g ${key}`, title]),
  ["/", "Search in the list"],
  ["j  k", "Next, previous message"],
  ["Space", "Pause or resume the live tail"],
  ["y", "Copy the message's value"],
  ["Esc", "Close what is open"],
  ["?", "This sheet"],
];

export function isTyping(event: KeyboardEvent): boolean {
  const target = event.target as HTMLElement;
  return (
    event.ctrlKey ||
    event.metaKey ||
    event.altKey ||
    target.closest("input,textarea,select,[role=dialog]") !== null
  );
}

export function Keys() {
  const [open, setOpen] = useState(false);
  const before = useRef("");
  const navigate = useNavigate();
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (isTyping(event)) return;
      const place = before.current === "g" && PLACES[event.key as keyof typeof PLACES];
      // The second of "g g" begins nothing new.
      before.current = place ? "" : event.key;
      if (place) navigate({ to: place[0] });
      else if (event.key === "?") setOpen(true);
      else if (event.key === "/") {
        const search = document.querySelector<HTMLInputElement>(
          "input[type=search], .hr-search input",
        );
        if (search) {
          event.preventDefault();
          search.focus();
        }
      }
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, [navigate]);
  return (
    <>
      <Button variant="plain" aria-label="Keyboard shortcuts" onClick={() => setOpen(true)}>
        ?
      </Button>
      <Modal isOpen={open} onClose={() => setOpen(false)} variant="small" aria-label="Keyboard">
        <ModalHeader title="Keyboard" />
        <ModalBody>
          <DescriptionList isHorizontal isCompact>
            {SHEET.map(([key, meaning]) => (
              <DescriptionListGroup key={key}>
                <DescriptionListTerm>
                  <kbd>{key}</kbd>
                </DescriptionListTerm>
                <DescriptionListDescription>{meaning}</DescriptionListDescription>
              </DescriptionListGroup>
            ))}
          </DescriptionList>
        </ModalBody>
      </Modal>
    </>
  );
}
