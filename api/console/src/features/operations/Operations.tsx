// Receipts of changes: what was asked for, and what became of it. The newest first.

import {
  EmptyState,
  EmptyStateBody,
  PageSection,
  Spinner,
  Switch,
  Title,
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
import { usePages } from "../../hooks/usePages";
import { type ApiKey, all, type Operation, type Stream, type Topic } from "../../lib/client";
import { ago, moment } from "../../lib/format";
import { curl, python } from "../../lib/recipe";
import { CopyAs } from "../../ui/CopyAs";
import { More } from "../../ui/More";
import { Problem } from "../../ui/Problem";
import { State } from "../../ui/Why";

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
  const names = useQuery({ queryKey: ["names"], queryFn: namesById, refetchInterval: 15_000 });
  const states: readonly string[] = SHOWN[shown];
  const found = operations.items.filter(
    (each) => states.length === 0 || states.includes(each.state),
  );
  const recipe = {
    cli: "headrace explain OBJECT",
    curl: curl("GET", path),
    python: python('print(b.admin.explain("OBJECT"))'),
  };
  return (
    <PageSection>
      <Toolbar>
        <ToolbarContent alignItems="center">
          <ToolbarItem>
            <Title headingLevel="h1">Operations</Title>
          </ToolbarItem>
          <ToolbarItem>
            <ToggleGroup aria-label="Which operations" isCompact>
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
              label="Console sessions too"
              isChecked={sessions}
              onChange={(_, on) => setSessions(on)}
            />
          </ToolbarItem>
          <ToolbarItem align={{ default: "alignEnd" }}>
            <CopyAs recipe={recipe} />
          </ToolbarItem>
        </ToolbarContent>
      </Toolbar>
      <p className="hr-muted">
        Every change leaves one: it succeeds once workers have seen on the nodes that it is so.
        Signing in and out makes and ends the key of a session: those are shown if you ask for them.
      </p>
      {operations.isPending && <Spinner aria-label="Loading" />}
      {operations.isError && <Problem error={operations.error} />}
      {operations.data && found.length === 0 && (
        <EmptyState
          titleText={
            shown === "All" ? "No operations yet" : `None of those is ${shown.toLowerCase()}`
          }
          headingLevel="h2"
        >
          <EmptyStateBody>
            <Link to="/topics">Create a topic</Link>, or change one, and its operation stands here.
          </EmptyStateBody>
        </EmptyState>
      )}
      {found.length > 0 && <List operations={found} names={names.data ?? new Map()} />}
      <More pages={operations}>Older operations</More>
    </PageSection>
  );
}

type ListProps = { operations: Operation[]; names: Map<string, string> };

function List({ operations, names }: ListProps) {
  return (
    <Table aria-label="Operations" variant="compact">
      <Thead>
        <Tr>
          <Th modifier="nowrap">What</Th>
          <Th modifier="nowrap">State</Th>
          <Th modifier="nowrap">Object</Th>
          <Th modifier="nowrap">Began (UTC)</Th>
          <Th modifier="nowrap">Took</Th>
          <Th modifier="nowrap">By</Th>
        </Tr>
      </Thead>
      <Tbody>
        {operations.map((each) => {
          const known = STATES[each.state as keyof typeof STATES];
          const what = each.kind.replaceAll("_", " ");
          const error = each.error?.detail;
          return (
            <Tr key={each.id}>
              <Td dataLabel="What" modifier="nowrap">
                {what}
              </Td>
              <Td dataLabel="State" modifier="nowrap">
                <State
                  id={each.target.id}
                  orElse={each.id}
                  name={`${what} ${names.get(each.target.id) ?? each.target.id}`}
                  text={known?.text ?? each.state}
                  status={known?.status ?? "info"}
                />
                {typeof error === "string" && <div className="hr-muted hr-wrap">{error}</div>}
              </Td>
              <Td dataLabel="Object">
                <Target {...each.target} name={names.get(each.target.id) ?? ofSession(each)} />
              </Td>
              <Td dataLabel="Began (UTC)" modifier="nowrap">
                {moment(each.created_at).slice(0, 19)}
              </Td>
              <Td dataLabel="Took" modifier="nowrap">
                {each.finished_at
                  ? ago(each.created_at, Date.parse(each.finished_at))
                  : `${ago(each.created_at)} so far`}
              </Td>
              <Td dataLabel="By">
                <span title={each.created_by}>{names.get(each.created_by) ?? actor(each)}</span>
              </Td>
            </Tr>
          );
        })}
      </Tbody>
    </Table>
  );
}

/** Who is no key that is listed: a session, or the service itself. */
function actor(operation: Operation): string {
  return operation.created_by.startsWith("key_") ? "a session or a past key" : operation.created_by;
}

/** Keys of sessions are not listed, so their operations say what they are of. */
function ofSession(operation: Operation): string | undefined {
  const isSession = operation.target.kind === "key" && operation.created_by === "console";
  return isSession ? "of a console session" : undefined;
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
