import { ToggleGroup, ToggleGroupItem } from "@patternfly/react-core";
import { useEffect, useState } from "react";

const WISHES = ["light", "dark", "system"] as const;
type Wish = (typeof WISHES)[number];
const KEPT_AS = "headrace-theme";

function kept(): Wish {
  return WISHES.find((wish) => wish === localStorage.getItem(KEPT_AS)) ?? "system";
}

/** Light, dark, or as the system says; kept in this browser. */
export function ThemeChoice() {
  const [wish, setWish] = useState(kept);
  useEffect(() => {
    localStorage.setItem(KEPT_AS, wish);
    const system = matchMedia("(prefers-color-scheme: dark)");
    const apply = () => {
      const dark = wish === "dark" || (wish === "system" && system.matches);
      document.documentElement.classList.toggle("pf-v6-theme-dark", dark);
    };
    apply();
    system.addEventListener("change", apply);
    return () => system.removeEventListener("change", apply);
  }, [wish]);
  return (
    <ToggleGroup aria-label="Theme" isCompact>
      {WISHES.map((each) => (
        <ToggleGroupItem
          key={each}
          text={each[0].toUpperCase() + each.slice(1)}
          isSelected={wish === each}
          onChange={() => setWish(each)}
        />
      ))}
    </ToggleGroup>
  );
}
