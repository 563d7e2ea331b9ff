// A table of rows that are alike. Columns are data: no page writes heads and cells by hand.

import { Table, Tbody, Td, Th, Thead, type ThProps, Tr } from "@patternfly/react-table";
import type { ReactNode } from "react";

export type Column<Row> = {
  title: string;
  cell: (row: Row) => ReactNode;
  isNumber?: boolean;
  isMono?: boolean;
  /** Whether a cell is one line, or breaks also within a word; otherwise it breaks between words. */
  wrap?: "never" | "anywhere";
  width?: ThProps["width"];
};

type Props<Row> = {
  label: string;
  columns: Column<Row>[];
  rows: Row[];
  keyOf: (row: Row, index: number) => string | number;
  isCompact?: boolean;
  /** Buttons at the end of each row. */
  actions?: (row: Row) => ReactNode;
};

export function DataTable<Row>({ label, columns, rows, keyOf, isCompact, actions }: Props<Row>) {
  return (
    <Table aria-label={label} variant={isCompact ? "compact" : undefined}>
      <Thead>
        <Tr>
          {columns.map(({ title, isNumber, width }) => (
            <Th
              key={title}
              modifier="nowrap"
              width={width}
              className={isNumber ? "hr-number" : undefined}
            >
              {title}
            </Th>
          ))}
          {actions && <Th screenReaderText="Actions" />}
        </Tr>
      </Thead>
      <Tbody>
        {rows.map((row, index) => (
          <Tr key={keyOf(row, index)}>
            {columns.map((column) => (
              <Td
                key={column.title}
                dataLabel={column.title}
                className={classOf(column)}
                modifier={column.wrap === "anywhere" ? "breakWord" : undefined}
              >
                {column.cell(row)}
              </Td>
            ))}
            {actions && <Td isActionCell>{actions(row)}</Td>}
          </Tr>
        ))}
      </Tbody>
    </Table>
  );
}

function classOf<Row>({ isNumber, isMono, wrap }: Column<Row>): string | undefined {
  const names = [isNumber && "hr-number", isMono && "hr-mono", wrap === "never" && "hr-nowrap"];
  return names.filter(Boolean).join(" ") || undefined;
}
