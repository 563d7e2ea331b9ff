// Receipts of changes: what was asked for, and what became of it. The newest first.

import {
  Button,
  EmptyState,
  EmptyStateBody,
  PageSection,
  Spinner,
  Title,
  ToggleGroup,
  ToggleGroupItem,
  Toolbar,
  ToolbarContent,
  ToolbarItem,
} from "@patternfly/react-core";
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { ago, moment } from "../api/bytes";
import { call, type Operation, type Page } from "../api/client";
import { CopyAs, curl, python } from "../widgets/CopyAs";
import { Problem } from "../widgets/Problem";
import { State } from "../widgets/Why";

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

export function Operations() {
  const [shown, setShown] = useState<Shown>("All");
  const operations = useInfiniteQuery({
    queryKey: ["operations"],
    queryFn: ({ pageParam }) =>
      call<Page<Operation>>(
        "GET",
        `${PATH}${pageParam && `&page_token=${encodeURIComponent(pageParam)}`}`,
      ),
    initialPageParam: "",
    getNextPageParam: (last) => last.next_page_token ?? undefined,
    refetchInterval: 3000,
  });
  const loaded = operations.data?.pages.flatMap((page) => page.items) ?? [];
  const states: readonly string[] = SHOWN[shown];
  const found = loaded.filter((each) => states.length === 0 || states.includes(each.state));
  const recipe = {
    cli: "headrace explain OBJECT",
    curl: curl("GET", PATH),
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
          <ToolbarItem align={{ default: "alignEnd" }}>
            <CopyAs recipe={recipe} />
          </ToolbarItem>
        </ToolbarContent>
      </Toolbar>
      <p className="hr-muted">
        Every change leaves one: it succeeds once workers have seen on the nodes that it is so.
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
      {found.length > 0 && <List operations={found} />}
      {operations.hasNextPage && (
        <Button
          variant="link"
          isLoading={operations.isFetchingNextPage}
          onClick={() => operations.fetchNextPage()}
        >
          Older operations
        </Button>
      )}
    </PageSection>
  );
}

function List({ operations }: { operations: Operation[] }) {
  return (
    <Table aria-label="Operations" variant="compact">
      <Thead>
        <Tr>
          <Th>What</Th>
          <Th>State</Th>
          <Th>Object</Th>
          <Th>Began (UTC)</Th>
          <Th>Took</Th>
          <Th>By</Th>
        </Tr>
      </Thead>
      <Tbody>
        {operations.map((each) => {
          const known = STATES[each.state as keyof typeof STATES];
          const what = each.kind.replaceAll("_", " ");
          const error = each.error?.detail;
          return (
            <Tr key={each.id}>
              <Td dataLabel="What">{what}</Td>
              <Td dataLabel="State">
                <State
                  id={each.id}
                  name={`${what} ${each.id}`}
                  text={known?.text ?? each.state}
                  status={known?.status ?? "info"}
                />
                {typeof error === "string" && <div className="hr-muted">{error}</div>}
              </Td>
              <Td dataLabel="Object">
                <Target kind={each.target.kind} id={each.target.id} />
              </Td>
              <Td dataLabel="Began (UTC)">{moment(each.created_at).slice(0, 19)}</Td>
              <Td dataLabel="Took">
                {each.finished_at
                  ? ago(each.created_at, Date.parse(each.finished_at))
                  : `${ago(each.created_at)} so far`}
              </Td>
              <Td dataLabel="By" className="hr-mono">
                {each.created_by}
              </Td>
            </Tr>
          );
        })}
      </Tbody>
    </Table>
  );
}

/** The object of an operation, on its own page where there is one. */
function Target({ kind, id }: { kind: string; id: string }) {
  const text = `${kind} ${id}`;
  if (kind === "topic") {
    return (
      <Link to="/topics/$topicId" params={{ topicId: id }} className="hr-mono">
        {text}
      </Link>
    );
  }
  const list = kind === "stream" ? "/streams" : kind === "key" ? "/keys" : null;
  if (list === null) return <span className="hr-mono">{text}</span>;
  return (
    <Link to={list} className="hr-mono">
      {text}
    </Link>
  );
}
