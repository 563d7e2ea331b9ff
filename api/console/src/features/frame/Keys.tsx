// The keyboard: where a key leads, and the sheet that says so. Keys mean nothing while one types.

import {
  Button,
  DescriptionList,
  DescriptionListDescription,
  DescriptionListGroup,
  DescriptionListTerm,
} from "@patternfly/react-core";
import { useNavigate } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { isTyping } from "../../lib/keyboard";
import type { Place } from "../../lib/places";
import { Dialog } from "../../ui/Dialog";

const SHEET = [
  ["/", "Search the list"],
  ["j  k", "Next or previous message"],
  ["Space", "Pause or resume the live tail"],
  ["y", "Copy the message value"],
  ["Esc", "Close"],
  ["?", "Show keyboard shortcuts"],
];

/** `places`: those that the reader may see; keys lead nowhere else. */
export function Keys({ places }: { places: Place[] }) {
  const [open, setOpen] = useState(false);
  const before = useRef("");
  const navigate = useNavigate();
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (isTyping(event)) return;
      const place = before.current === "g" && places.find(({ key }) => key === event.key);
      // The second of "g g" begins nothing new.
      before.current = place ? "" : event.key;
      if (place) navigate({ to: place.to });
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
  }, [navigate, places]);
  const sheet = [...places.map(({ key, title }) => [`g ${key}`, title]), ...SHEET];
  return (
    <>
      <Button variant="plain" aria-label="Keyboard shortcuts" onClick={() => setOpen(true)}>
        ?
      </Button>
      {open && (
        <Dialog title="Keyboard shortcuts" onClose={() => setOpen(false)}>
          <DescriptionList isHorizontal isCompact>
            {sheet.map(([key, meaning]) => (
              <DescriptionListGroup key={key}>
                <DescriptionListTerm>
                  <kbd>{key}</kbd>
                </DescriptionListTerm>
                <DescriptionListDescription>{meaning}</DescriptionListDescription>
              </DescriptionListGroup>
            ))}
          </DescriptionList>
        </Dialog>
      )}
    </>
  );
}
