import { ToggleGroup, ToggleGroupItem } from "@patternfly/react-core";
import { useEffect, useState } from "react";

const CHOICES = ["light", "dark", "system"] as const;
type Choice = (typeof CHOICES)[number];
const KEPT_AS = "headrace-theme";

function kept(): Choice {
  return CHOICES.find((choice) => choice === localStorage.getItem(KEPT_AS)) ?? "system";
}

/** Light, dark, or as the system says; kept in this browser. */
export function ThemeChoice() {
  const [choice, setChoice] = useState(kept);
  useEffect(() => {
    localStorage.setItem(KEPT_AS, choice);
    const system = matchMedia("(prefers-color-scheme: dark)");
    const apply = () => {
      const dark = choice === "dark" || (choice === "system" && system.matches);
      document.documentElement.classList.toggle("pf-v6-theme-dark", dark);
    };
    apply();
    system.addEventListener("change", apply);
    return () => system.removeEventListener("change", apply);
  }, [choice]);
  return (
    <ToggleGroup aria-label="Theme" isCompact>
      {CHOICES.map((each) => (
        <ToggleGroupItem
          key={each}
          text={each[0].toUpperCase() + each.slice(1)}
          isSelected={choice === each}
          onChange={() => setChoice(each)}
        />
      ))}
    </ToggleGroup>
  );
}
