// The operations: each request and its outcome, newest first.

import { Switch, ToggleGroup, ToggleGroupItem, ToolbarItem } from "@patternfly/react-core";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { usePages } from "../../hooks/usePages";
import { type ApiKey, all, type Operation, type Stream, type Topic } from "../../lib/client";
import { ago, moment } from "../../lib/format";
import { curl, python } from "../../lib/recipe";
import type { Column } from "../../ui/DataTable";
import { Empty } from "../../ui/Empty";
import { List } from "../../ui/List";
import { ListPage } from "../../ui/ListPage";
import { State } from "../../ui/ObjectState";

const PATH = "/v1/operations?newest_first=true&page_size=50";

const STATES = {
  PENDING: { text: "Pending", status: "info" },
  RUNNING: { text: "Running", status: "info" },
  SUCCEEDED: { text: "Succeeded", status: "success" },
  FAILED: { text: "Failed", status: "danger" },
  SUPERSEDED: { text: "Superseded", status: "warning" },
} as const;

const SHOWN = { All: [], Running: ["PENDING", "RUNNING"], Failed: ["FAILED"] } as const;
type Shown = keyof typeof SHOWN;

/** Names by id, as far as this key may see the objects and they are still there. */
async function namesById(): Promise<Map<string, string>> {
  const nothing = () => [];
  const [topics, streams, keys] = await Promise.all([
    all<Topic>("/v1/topics").catch(nothing),
    all<Stream>("/v1/streams").catch(nothing),
    all<ApiKey>("/v1/api-keys").catch(nothing),
  ]);
  return new Map([
    ...topics.map((each): [string, string] => [each.id, `${each.stream}/${each.name}`]),
    ...[...streams, ...keys].map((each): [string, string] => [each.id, each.name]),
  ]);
}

export function Operations() {
  const [shown, setShown] = useState<Shown>("All");
  const [sessions, setSessions] = useState(false);
  const path = sessions ? `${PATH}&sessions=true` : PATH;
  const operations = usePages<Operation>(["operations", sessions], path, 3000);
  // Names never change: all of them are read once, and again only after something was created.
  const made = operations.items.find(({ kind }) => kind.startsWith("create_"))?.id ?? "";
  const names = useQuery({
    queryKey: ["names", made],
    queryFn: namesById,
    enabled: operations.isSuccess,
    placeholderData: keepPreviousData,
    staleTime: Number.POSITIVE_INFINITY,
  });
  const states: readonly string[] = SHOWN[shown];
  const found = operations.items.filter(
    (each) => states.length === 0 || states.includes(each.state),
  );
  const recipe = {
    cli: "headrace explain OBJECT",
    curl: curl("GET", path),
    python: python('print(b.admin.explain("OBJECT"))'),
  };
  const tools = (
    <>
      <ToolbarItem>
        <ToggleGroup aria-label="Filter by state" isCompact>
          {(Object.keys(SHOWN) as Shown[]).map((each) => (
            <ToggleGroupItem
              key={each}
              text={each}
              isSelected={shown === each}
              onChange={() => setShown(each)}
            />
          ))}
        </ToggleGroup>
      </ToolbarItem>
      <ToolbarItem alignSelf="center">
        <Switch
          id="sessions"
          label="Show console sessions"
          isChecked={sessions}
          onChange={(_, on) => setSessions(on)}
        />
      </ToolbarItem>
    </>
  );
  return (
    <ListPage
      title="Operations"
      tools={tools}
      about="Every change creates an operation, which succeeds once the nodes have applied the change. Signing in and out creates and revokes the key of a session; these operations are hidden by default."
      recipe={recipe}
    >
      <List
        label="Operations"
        noun="operation"
        query={operations}
        items={found}
        columns={columnsOf(names.data ?? new Map())}
        keyOf={(operation) => operation.id}
        isCompact
        pages={operations}
        empty={
          <Empty
            title={shown === "All" ? "No operations yet" : `No ${shown.toLowerCase()} operations`}
            body={
              <>
                <Link to="/topics">Create or change a topic</Link> to see its operation here.
              </>
            }
          />
        }
      />
    </ListPage>
  );
}

const whatOf = (operation: Operation) => operation.kind.replaceAll("_", " ");

/** `names`: of the objects, and of the keys that acted, by id. */
function columnsOf(names: Map<string, string>): Column<Operation>[] {
  return [
    { title: "Operation", wrap: "never", cell: whatOf },
    {
      title: "State",
      wrap: "never",
      cell: (each) => <OperationState operation={each} name={names.get(each.target.id)} />,
    },
    {
      title: "Object",
      cell: (each) => (
        <Target {...each.target} name={names.get(each.target.id) ?? ofSession(each)} />
      ),
    },
    {
      title: "Started (UTC)",
      wrap: "never",
      cell: (each) => moment(each.created_at).slice(0, 19),
    },
    {
      title: "Duration",
      wrap: "never",
      cell: (each) =>
        each.finished_at
          ? ago(each.created_at, Date.parse(each.finished_at))
          : `${ago(each.created_at)} elapsed`,
    },
    {
      title: "Created by",
      cell: (each) => (
        <span title={each.created_by}>{names.get(each.created_by) ?? actor(each)}</span>
      ),
    },
  ];
}

function OperationState({ operation, name }: { operation: Operation; name?: string }) {
  const known = STATES[operation.state as keyof typeof STATES];
  const error = operation.error?.detail;
  return (
    <>
      <State
        id={operation.target.id}
        orElse={operation.id}
        name={`${whatOf(operation)} ${name ?? operation.target.id}`}
        text={known?.text ?? operation.state}
        status={known?.status ?? "info"}
      />
      {typeof error === "string" && <div className="hr-muted hr-wrap">{error}</div>}
    </>
  );
}

/** Who is no key that is listed: a session, or the service itself. */
function actor(operation: Operation): string {
  return operation.created_by.startsWith("key_") ? "session or revoked key" : operation.created_by;
}

/** Keys of sessions are not listed, so their operations say what they are of. */
function ofSession(operation: Operation): string | undefined {
  const isSession = operation.target.kind === "key" && operation.created_by === "console";
  return isSession ? "console session" : undefined;
}

type TargetProps = { kind: string; id: string; name?: string };

/** The object of an operation, on its own page where there is one. */
function Target({ kind, id, name }: TargetProps) {
  const shown = name ?? <span className="hr-mono">{id}</span>;
  if (kind === "topic") {
    return (
      <>
        topic{" "}
        <Link to="/topics/$topicId" params={{ topicId: id }} title={id}>
          {shown}
        </Link>
      </>
    );
  }
  if (kind === "report") {
    return (
      <>
        report{" "}
        <Link to="/reports/$runId" params={{ runId: id }}>
          {shown}
        </Link>
      </>
    );
  }
  if (kind === "hold") {
    return (
      <>
        hold{" "}
        <Link to="/retention" search={{ tab: "holds" }}>
          {shown}
        </Link>
      </>
    );
  }
  const list = kind === "stream" ? "/streams" : kind === "key" ? "/keys" : null;
  return (
    <>
      {kind}{" "}
      {list ? (
        <Link to={list} title={id}>
          {shown}
        </Link>
      ) : (
        shown
      )}
    </>
  );
}
