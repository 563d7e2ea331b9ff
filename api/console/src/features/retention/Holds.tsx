// Legal holds: what nothing deletes, for which case, who said so, and whether it is in force.

import {
  Button,
  ToggleGroup,
  ToggleGroupItem,
  Toolbar,
  ToolbarContent,
  ToolbarItem,
} from "@patternfly/react-core";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { useFilter } from "../../hooks/useFilter";
import { useMay } from "../../hooks/useSession";
import { all } from "../../lib/client";
import { moment } from "../../lib/format";
import { curl, python } from "../../lib/recipe";
import { CopyAs, Snippet } from "../../ui/CopyAs";
import type { Column } from "../../ui/DataTable";
import { Empty } from "../../ui/Empty";
import { List } from "../../ui/List";
import { State } from "../../ui/ObjectState";
import { RowButton } from "../../ui/RowButton";
import { SearchBox } from "../../ui/SearchBox";
import { TopicLink } from "../../ui/TopicLink";
import { type Hold, isOver, keptBy, scopeOf, wordOf } from "./hold";
import { PlaceHold } from "./PlaceHold";
import { ReleaseHold } from "./ReleaseHold";

const RECIPE = {
  cli: "headrace hold list",
  curl: curl("GET", "/v1/legal-holds"),
  python: python("print(b.admin.holds())"),
};

export function Holds() {
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
  const items = (holds.data ?? []).filter((hold) => isOver(hold) === released);
  const filter = useFilter(items, (hold) => `${hold.case_id} ${hold.topic} ${hold.reason}`);
  const place = mayPlace && <Button onClick={() => setPlacing(true)}>Hold a topic</Button>;
  return (
    <div className="hr-panel">
      <Toolbar>
        <ToolbarContent alignItems="center">
          <SearchBox label="Search holds" placeholder="Case, topic, reason ( / )" filter={filter} />
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
            {place}
          </ToolbarItem>
        </ToolbarContent>
      </Toolbar>
      <List
        label="Legal holds"
        noun={released ? "released hold" : "hold"}
        query={holds}
        items={items}
        filter={filter}
        columns={columnsOf(released)}
        keyOf={(hold) => hold.id}
        actions={(hold) =>
          mayRelease &&
          !released &&
          hold.state !== "RELEASING" && (
            <RowButton
              act="Release"
              of={`the hold of ${hold.case_id} on ${hold.topic}`}
              onClick={() => setReleasing(hold)}
            />
          )
        }
        empty={released ? <Empty title="No hold was released" /> : <NoHolds place={place} />}
      />
      {placing && <PlaceHold onClose={() => setPlacing(false)} />}
      {releasing && <ReleaseHold hold={releasing} onClose={() => setReleasing(null)} />}
    </div>
  );
}

function columnsOf(released: boolean): Column<Hold>[] {
  return [
    { title: "Case", width: 10, wrap: "anywhere", cell: (hold) => hold.case_id },
    { title: "State", cell: (hold) => <HoldState hold={hold} /> },
    {
      title: "What is held",
      width: 20,
      wrap: "anywhere",
      cell: (hold) => (
        <>
          <TopicLink id={hold.topic_id} name={hold.topic} />
          <span className="hr-exact">{scopeOf(hold)}</span>
        </>
      ),
    },
    {
      title: "Reason",
      width: 25,
      wrap: "anywhere",
      cell: (hold) => (
        <>
          {hold.reason}
          <span className="hr-exact">
            by <span className="hr-mono">{hold.created_by}</span>
          </span>
        </>
      ),
    },
    { title: "Keeps", isNumber: true, wrap: "never", cell: keptBy },
    {
      title: released ? "Released (UTC)" : "Since (UTC)",
      wrap: "never",
      cell: (hold) =>
        moment((released ? hold.released_at : hold.activated_at) ?? "").slice(0, 16) || "not yet",
    },
  ];
}

function HoldState({ hold }: { hold: Hold }) {
  const missing = hold.status.missing_partitions;
  return (
    <>
      <State id={hold.id} name={`the hold of ${hold.case_id}`} {...wordOf(hold)} />
      {missing.length > 0 && !isOver(hold) && (
        <span className="hr-exact">unknown to partition {missing.slice(0, 8).join(", ")}</span>
      )}
    </>
  );
}

function NoHolds({ place }: { place: ReactNode }) {
  return (
    <Empty
      title="Nothing is held"
      size="lg"
      body={
        <>
          A legal hold keeps a topic, or a part of it, from every deletion: by age, by size, by a
          purge, by whoever deletes the topic or its project. It ends only by its release, and both
          are audited.
          {!place && " To place one takes a key with the role owner."}
        </>
      }
      action={place}
    >
      {place && (
        <Snippet
          title="Shell"
          code={'headrace hold create orders --case CASE-7 --reason "asked for by the court"'}
        />
      )}
    </Empty>
  );
}
