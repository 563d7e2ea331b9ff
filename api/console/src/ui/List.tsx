// A list in each of its states: loading, failed, empty, nothing found, shown, and more to come.

import { Spinner } from "@patternfly/react-core";
import type { ReactNode } from "react";
import type { Filter } from "../hooks/useFilter";
import { counted } from "../lib/format";
import { type Column, DataTable } from "./DataTable";
import { More, type Pages } from "./More";
import { NoMatch } from "./NoMatch";
import { Problem } from "./Problem";

const SHOWN_MAX = 200;

type Props<Item> = {
  label: string;
  /** One of it, in a word: "topic". */
  noun: string;
  query: { isPending: boolean; error: unknown };
  items: Item[];
  columns: Column<Item>[];
  keyOf: (item: Item) => string;
  empty: ReactNode;
  filter?: Filter<Item>;
  actions?: (item: Item) => ReactNode;
  isCompact?: boolean;
  /** What the server gives page by page. */
  pages?: Pages;
  /** What is said below the list besides how many there are. */
  note?: string;
};

export function List<Item>(props: Props<Item>) {
  const { noun, query, items, filter, pages, note = "" } = props;
  const found = filter?.found ?? items;
  const isEmpty = items.length === 0;
  const isPart = pages?.hasNextPage === true;
  return (
    <>
      {query.isPending && <Spinner aria-label="Loading" />}
      {query.error !== null && <Problem error={query.error} />}
      {isEmpty && !query.isPending && query.error === null && props.empty}
      {!isEmpty && found.length === 0 && (
        <NoMatch of={isPart ? `loaded ${noun}s` : `${noun}s`} onClear={() => filter?.setText("")} />
      )}
      {found.length > 0 && (
        <>
          <DataTable
            label={props.label}
            columns={props.columns}
            rows={found.slice(0, SHOWN_MAX)}
            keyOf={props.keyOf}
            actions={props.actions}
            isCompact={props.isCompact}
          />
          <p className="hr-note" aria-live="polite">
            {!pages && found.length > SHOWN_MAX
              ? `Showing ${SHOWN_MAX} of ${counted(found.length, noun)}. Search to narrow the list.`
              : `${counted(found.length, noun)}${note}`}
          </p>
        </>
      )}
      {pages && <More pages={pages} />}
    </>
  );
}
