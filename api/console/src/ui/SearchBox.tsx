import { SearchInput, ToolbarItem } from "@patternfly/react-core";
import type { Filter } from "../hooks/useFilter";

type Props<Item> = { label: string; placeholder?: string; filter: Filter<Item> };

/** The search of a list, in its toolbar. */
export function SearchBox<Item>({ label, placeholder = "Search ( / )", filter }: Props<Item>) {
  return (
    <ToolbarItem className="hr-search">
      <SearchInput
        aria-label={label}
        placeholder={placeholder}
        value={filter.text}
        onChange={(_, text) => filter.setText(text)}
        onClear={() => filter.setText("")}
      />
    </ToolbarItem>
  );
}
