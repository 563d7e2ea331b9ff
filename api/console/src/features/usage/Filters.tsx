// The filters of the usage page. They are in its address, so that a view can be shared.

import {
  FormSelect,
  FormSelectOption,
  TextInput,
  ToggleGroup,
  ToggleGroupItem,
  Toolbar,
  ToolbarContent,
  ToolbarItem,
} from "@patternfly/react-core";
import { meterTitle } from "../../lib/meters";
import { RANGE_TITLES, RANGES, type Span, type UsageSearch } from "./search";

type Props = {
  search: UsageSearch;
  span: Span;
  topics: { id: string; name: string }[];
  meters: string[];
  onChange: (change: UsageSearch) => void;
};

export function Filters({ search, span, topics, meters, onChange }: Props) {
  const first = new Date(span.from).toISOString().slice(0, 10);
  const last = new Date(span.to - 1).toISOString().slice(0, 10);
  return (
    <Toolbar aria-label="Filters">
      <ToolbarContent alignItems="center">
        <ToolbarItem>
          <ToggleGroup aria-label="Time (UTC)" isCompact className="hr-ranges">
            {RANGES.map((range) => (
              <ToggleGroupItem
                key={range}
                text={RANGE_TITLES[range]}
                isSelected={(search.range ?? "month") === range}
                onChange={() =>
                  onChange(
                    range === "dates"
                      ? { range, from: first, to: last }
                      : { range, from: undefined, to: undefined },
                  )
                }
              />
            ))}
          </ToggleGroup>
        </ToolbarItem>
        {search.range === "dates" && (
          <>
            <ToolbarItem>
              <TextInput
                type="date"
                aria-label="First day (UTC)"
                value={first}
                onChange={(_, from) => from && onChange({ from })}
              />
            </ToolbarItem>
            <ToolbarItem>
              <TextInput
                type="date"
                aria-label="Last day (UTC)"
                value={last}
                onChange={(_, to) => to && onChange({ to })}
              />
            </ToolbarItem>
          </>
        )}
        <ToolbarItem className="hr-choice">
          <FormSelect
            aria-label="Topic"
            value={search.topic ?? ""}
            onChange={(_, topic) => onChange({ topic: topic || undefined })}
          >
            <FormSelectOption value="" label="All topics" />
            {topics.map((topic) => (
              <FormSelectOption key={topic.id} value={topic.id} label={topic.name} />
            ))}
          </FormSelect>
        </ToolbarItem>
        <ToolbarItem className="hr-choice">
          <FormSelect
            aria-label="Meter"
            value={search.meter ?? ""}
            onChange={(_, meter) => onChange({ meter: meter || undefined })}
          >
            <FormSelectOption value="" label="All meters" />
            {meters.map((meter) => (
              <FormSelectOption key={meter} value={meter} label={meterTitle(meter)} />
            ))}
          </FormSelect>
        </ToolbarItem>
      </ToolbarContent>
    </Toolbar>
  );
}
