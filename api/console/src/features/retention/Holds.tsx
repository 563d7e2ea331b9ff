// Legal holds: what is protected from deletion, for which case, by whom, and since when.

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
    // A hold that is changing is read often, others rarely.
    refetchInterval: ({ state }) =>
      state.data?.some((hold) => /ING$/.test(hold.state)) ? 1000 : 10_000,
  });
  const items = (holds.data ?? []).filter((hold) => isOver(hold) === released);
  const filter = useFilter(items, (hold) => `${hold.case_id} ${hold.topic} ${hold.reason}`);
  const place = mayPlace && <Button onClick={() => setPlacing(true)}>Create legal hold</Button>;
  return (
    <div className="hr-panel">
      <Toolbar>
        <ToolbarContent alignItems="center">
          <SearchBox label="Search holds" placeholder="Case, topic, reason ( / )" filter={filter} />
          <ToolbarItem>
            <ToggleGroup aria-label="Filter by state" isCompact>
              <ToggleGroupItem
                text="Active"
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
              of={`hold ${hold.case_id} on ${hold.topic}`}
              onClick={() => setReleasing(hold)}
            />
          )
        }
        empty={released ? <Empty title="No released holds" /> : <NoHolds place={place} />}
      />
      {placing && <PlaceHold onClose={() => setPlacing(false)} />}
      {releasing && <ReleaseHold hold={releasing} onClose={() => setReleasing(null)} />}
    </div>
  );
}

function columnsOf(released: boolean): Column<Hold>[] {
  return [
    { title: "Case", width: 15, wrap: "anywhere", cell: (hold) => hold.case_id },
    { title: "State", cell: (hold) => <HoldState hold={hold} /> },
    {
      title: "Scope",
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
            created by <span className="hr-mono">{hold.created_by}</span>
          </span>
        </>
      ),
    },
    { title: "Kept by holds", isNumber: true, wrap: "never", cell: keptBy },
    {
      title: released ? "Released (UTC)" : "Since (UTC)",
      wrap: "never",
      cell: (hold) => (
        <span className="hr-nowrap">
          {moment((released ? hold.released_at : hold.activated_at) ?? "").slice(0, 16) ||
            "pending"}
        </span>
      ),
    },
  ];
}

function HoldState({ hold }: { hold: Hold }) {
  const missing = hold.status.missing_partitions;
  return (
    <>
      <State id={hold.id} name={`hold ${hold.case_id}`} {...wordOf(hold)} />
      {missing.length > 0 && !isOver(hold) && (
        <span className="hr-exact">
          not yet applied to partition {missing.slice(0, 8).join(", ")}
        </span>
      )}
    </>
  );
}

function NoHolds({ place }: { place: ReactNode }) {
  return (
    <Empty
      title="No legal holds"
      size="lg"
      body={
        <>
          A legal hold protects a topic, or part of it, from every deletion: by age or size, by a
          purge, and when its topic or project is deleted. It ends only when it is released.
          Creating and releasing a hold are recorded in the audit log.
          {!place && " Creating a hold requires a key with the owner role."}
        </>
      }
      action={place}
    >
      {place && (
        <Snippet
          title="Shell"
          code={'headrace hold create orders --case CASE-7 --reason "requested by the court"'}
        />
      )}
    </Empty>
  );
}
