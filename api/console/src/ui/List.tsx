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
  /** What the server gives page by page, and the words of the button for the next one. */
  pages?: Pages;
  more?: string;
  /** What is said below the list besides how many there are. */
  note?: string;
};

export function List<Item>(props: Props<Item>) {
  const { noun, query, items, filter, pages, more, note = "" } = props;
  const found = filter?.found ?? items;
  const isEmpty = items.length === 0;
  const isPart = pages?.hasNextPage === true;
  return (
    <>
      {query.isPending && <Spinner aria-label="Loading" />}
      {query.error !== null && <Problem error={query.error} />}
      {isEmpty && !query.isPending && query.error === null && props.empty}
      {!isEmpty && found.length === 0 && (
        <NoMatch of={isPart ? `${noun} of these` : noun} onClear={() => filter?.setText("")} />
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
              ? `The first ${SHOWN_MAX} of ${found.length}; search to narrow them.`
              : `${counted(found.length, noun)}${note}`}
          </p>
        </>
      )}
      {pages && more && <More pages={pages}>{more}</More>}
    </>
  );
}
