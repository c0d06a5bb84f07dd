// One row of a table over pages. It is drawn anew only when it has changed: while somebody scrolls, most rows have not.

import { memo, type KeyboardEvent, type ReactElement, type RefObject } from "react";
import { t, type Language } from "@/i18n";
import type { Column } from "./DataTable";
import classes from "./DataTable.module.css";

/** What rows tell their table. It is the newest each time, and its changes draw no row anew. */
export interface RowEvents<T> {
  open: ((row: T) => void) | undefined;
  choose: (row: T) => void;
  key: (event: KeyboardEvent, row: T) => void;
}

interface RowProps<T> {
  row: T;
  index: number;
  height: number;
  columns: readonly Column<T>[];
  /** Whether it is selected; undefined where rows can't be. */
  selected: boolean | undefined;
  opens: boolean;
  /** The language of its texts, which change with it. */
  language: Language;
  events: RefObject<RowEvents<T>>;
}

function Row<T>({ row, index, height, columns, selected, opens, events }: RowProps<T>): ReactElement {
  return (
    <tr
      tabIndex={0}
      style={{ height }}
      aria-rowindex={index + 2}
      aria-selected={selected}
      onKeyDown={(event) => events.current.key(event, row)}
      onClick={() => events.current.open?.(row)}
      className={opens ? `${classes["row"] ?? ""} ${classes["open"] ?? ""}` : classes["row"]}
    >
      {selected !== undefined && (
        <td className={classes["cell"]} onClick={(event) => event.stopPropagation()}>
          <input type="checkbox" className={classes["check"]} tabIndex={-1} aria-label={t("Select")} checked={selected} onChange={() => events.current.choose(row)} />
        </td>
      )}
      {columns.map((column) => (
        <td key={column.key} className={classes["cell"]}>
          {column.show?.(row) ?? column.text(row)}
        </td>
      ))}
    </tr>
  );
}

export const DataRow = memo(Row) as typeof Row;
