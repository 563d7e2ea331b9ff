// Legal holds: what nothing deletes, for which case, who said so, and whether it is in force.

import {
  Button,
  EmptyState,
  EmptyStateActions,
  EmptyStateBody,
  EmptyStateFooter,
  SearchInput,
  Spinner,
  ToggleGroup,
  ToggleGroupItem,
  Toolbar,
  ToolbarContent,
  ToolbarItem,
} from "@patternfly/react-core";
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useMay } from "../../hooks/useSession";
import { all } from "../../lib/client";
import { moment } from "../../lib/format";
import { curl, python } from "../../lib/recipe";
import { CopyAs, Snippet } from "../../ui/CopyAs";
import { NoMatch } from "../../ui/NoMatch";
import { Problem } from "../../ui/Problem";
import { State } from "../../ui/Why";
import { type Hold, isOver, keptBy, scopeOf, wordOf } from "./hold";
import { PlaceHold } from "./PlaceHold";
import { ReleaseHold } from "./ReleaseHold";

const SHOWN_MAX = 200;

const RECIPE = {
  cli: "headrace hold list",
  curl: curl("GET", "/v1/legal-holds"),
  python: python("print(b.admin.holds())"),
};

export function Holds() {
  const [search, setSearch] = useState("");
  const [released, setReleased] = useState(false);
  const mayPlace = useMay("holds:create");
  const mayRelease = useMay("holds:release");
  const [placing, setPlacing] = useState(false);
  const [releasing, setReleasing] = useState<Hold | null>(null);
  const holds = useQuery({
    queryKey: ["holds"],
    queryFn: async () => (await all<Hold>("/v1/legal-holds")).toReversed(),
    // What is on its way is looked at often, what stands seldom.
    refetchInterval: ({ state }) =>
      state.data?.some((hold) => /ING$/.test(hold.state)) ? 1000 : 10_000,
  });
  const found = (holds.data ?? []).filter(
    (hold) =>
      isOver(hold) === released &&
      `${hold.case_id} ${hold.topic} ${hold.reason}`.toLowerCase().includes(search.toLowerCase()),
  );
  return (
    <div className="hr-panel">
      <Toolbar>
        <ToolbarContent alignItems="center">
          <ToolbarItem className="hr-search">
            <SearchInput
              aria-label="Search holds"
              placeholder="Case, topic, reason ( / )"
              value={search}
              onChange={(_, value) => setSearch(value)}
              onClear={() => setSearch("")}
            />
          </ToolbarItem>
          <ToolbarItem>
            <ToggleGroup aria-label="Which holds" isCompact>
              <ToggleGroupItem
                text="Held"
                isSelected={!released}
                onChange={() => setReleased(false)}
              />
              <ToggleGroupItem
                text="Released"
                isSelected={released}
                onChange={() => setReleased(true)}
              />
            </ToggleGroup>
          </ToolbarItem>
          <ToolbarItem align={{ default: "alignEnd" }} className="hr-acts">
            <CopyAs recipe={RECIPE} />
            {mayPlace && <Button onClick={() => setPlacing(true)}>Hold a topic</Button>}
          </ToolbarItem>
        </ToolbarContent>
      </Toolbar>
      {holds.isPending && <Spinner aria-label="Loading" />}
      {holds.isError && <Problem error={holds.error} />}
      {holds.data?.length === 0 && (
        <NoHolds onPlace={mayPlace ? () => setPlacing(true) : undefined} />
      )}
      {search && holds.data && holds.data.length > 0 && found.length === 0 ? (
        <NoMatch of={released ? "released hold" : "hold"} onClear={() => setSearch("")} />
      ) : (
        holds.data &&
        holds.data.length > 0 && (
          <List
            holds={found}
            released={released}
            onRelease={mayRelease ? setReleasing : undefined}
          />
        )
      )}
      {placing && <PlaceHold onClose={() => setPlacing(false)} />}
      {releasing && <ReleaseHold hold={releasing} onClose={() => setReleasing(null)} />}
    </div>
  );
}

type ListProps = { holds: Hold[]; released: boolean; onRelease?: (hold: Hold) => void };

function List({ holds, released, onRelease }: ListProps) {
  const when = released ? "Released (UTC)" : "Since (UTC)";
  return (
    <>
      <Table aria-label="Legal holds">
        <Thead>
          <Tr>
            <Th width={10}>Case</Th>
            <Th>State</Th>
            <Th width={20}>What is held</Th>
            <Th width={25}>Reason</Th>
            <Th className="hr-number" modifier="nowrap">
              Keeps
            </Th>
            <Th modifier="nowrap">{when}</Th>
            <Th screenReaderText="Actions" />
          </Tr>
        </Thead>
        <Tbody>
          {holds.slice(0, SHOWN_MAX).map((hold) => (
            <Tr key={hold.id}>
              <Td dataLabel="Case" modifier="breakWord">
                {hold.case_id}
              </Td>
              <Td dataLabel="State">
                <State id={hold.id} name={`the hold of ${hold.case_id}`} {...wordOf(hold)} />
                {hold.status.missing_partitions.length > 0 && !released && (
                  <span className="hr-exact">
                    unknown to partition {hold.status.missing_partitions.slice(0, 8).join(", ")}
                  </span>
                )}
              </Td>
              <Td dataLabel="What is held" modifier="breakWord">
                <Link to="/topics/$topicId" params={{ topicId: hold.topic_id }}>
                  {hold.topic}
                </Link>
                <span className="hr-exact">{scopeOf(hold)}</span>
              </Td>
              <Td dataLabel="Reason" modifier="breakWord">
                {hold.reason}
                <span className="hr-exact">
                  by <span className="hr-mono">{hold.created_by}</span>
                </span>
              </Td>
              <Td dataLabel="Keeps" className="hr-number hr-nowrap">
                {keptBy(hold)}
              </Td>
              <Td dataLabel={when} modifier="nowrap">
                {moment((released ? hold.released_at : hold.activated_at) ?? "").slice(0, 16) ||
                  "not yet"}
              </Td>
              <Td isActionCell>
                {onRelease && !released && hold.state !== "RELEASING" && (
                  <Button
                    variant="link"
                    isDanger
                    aria-label={`Release the hold of ${hold.case_id} on ${hold.topic}`}
                    onClick={() => onRelease(hold)}
                  >
                    Release
                  </Button>
                )}
              </Td>
            </Tr>
          ))}
        </Tbody>
      </Table>
      <p className="hr-note" aria-live="polite">
        {holds.length > SHOWN_MAX
          ? `The last ${SHOWN_MAX} of ${holds.length}; search to narrow them.`
          : `${holds.length} ${holds.length === 1 ? "hold" : "holds"}${released ? ", released for ever" : ""}`}
      </p>
    </>
  );
}

function NoHolds({ onPlace }: { onPlace?: () => void }) {
  return (
    <EmptyState titleText="Nothing is held" headingLevel="h2" variant="lg">
      <EmptyStateBody>
        A legal hold keeps a topic, or a part of it, from every deletion: by age, by size, by a
        purge, by whoever deletes the topic or its project. It ends only by its release, and both
        are audited.
      </EmptyStateBody>
      {onPlace ? (
        <EmptyStateFooter>
          <EmptyStateActions>
            <Button onClick={onPlace}>Hold a topic</Button>
          </EmptyStateActions>
          <Snippet
            title="Shell"
            code={'headrace hold create orders --case CASE-7 --reason "asked for by the court"'}
          />
        </EmptyStateFooter>
      ) : (
        <p className="hr-muted">To place one takes a key with the role owner.</p>
      )}
    </EmptyState>
  );
}
