// The head of a table: sorts, widths, and what narrows each column.

import { Checkbox, UnstyledButton } from "@mantine/core";
import { useRef, type PointerEvent, type ReactElement } from "react";
import { t } from "@/i18n";
import { NARROWEST, type Arrangement, type GridColumn } from "./columns";
import classes from "./grid.module.css";

export interface GridSort {
  key: string;
  order: "ASC" | "DESC";
}

const MARKS = { ascending: "▲", descending: "▼" };
/** The edge of a column, which is dragged. Whoever has no pointer finds widths in the menu of the table. */
function Handle({ resize }: { resize: (width: number | undefined) => void }): ReactElement {
  const from = useRef<{ x: number; width: number }>(undefined);
  const start = (event: PointerEvent<HTMLSpanElement>): void => {
    event.preventDefault();
    event.currentTarget.setPointerCapture(event.pointerId);
    from.current = { x: event.clientX, width: event.currentTarget.parentElement?.offsetWidth ?? NARROWEST };
  };
  const follow = (event: PointerEvent<HTMLSpanElement>): void => {
    if (from.current !== undefined) {
      resize(from.current.width + event.clientX - from.current.x);
    }
  };
  const end = (): void => {
    from.current = undefined;
  };
  return <span className={classes["handle"]} aria-hidden title={t("Drag; a double click gives the column its own width back")} onPointerDown={start} onPointerMove={follow} onPointerUp={end} onPointerCancel={end} onDoubleClick={() => resize(undefined)} />;
}

interface HeadProps<T> {
  columns: readonly GridColumn<T>[];
  arrangement: Arrangement;
  sort: GridSort | undefined;
  onSort: ((sort: GridSort) => void) | undefined;
  sticky: boolean;
  filters: { values: Readonly<Record<string, string>>; change: (key: string, value: string) => void } | undefined;
  /** How many of the loaded rows are selected; without it rows can't be. */
  selection: { state: "none" | "some" | "all"; toggle: () => void } | undefined;
  hasActions: boolean;
}

export function GridHead<T>({ columns, arrangement, sort, onSort, sticky, filters, selection, hasActions }: HeadProps<T>): ReactElement {
  const order = (column: GridColumn<T>): "ascending" | "descending" | undefined => (sort?.key !== column.key ? undefined : sort.order === "ASC" ? "ascending" : "descending");
  return (
    <thead className={sticky ? classes["sticky"] : ""}>
      <tr>
        {selection !== undefined && (
          <th className={classes["narrow"]}>
            <Checkbox size="xs" aria-label={t("Select all that are loaded")} checked={selection.state === "all"} indeterminate={selection.state === "some"} onChange={selection.toggle} />
          </th>
        )}
        {columns.map((column) => {
          const current = order(column);
          return (
            <th key={column.key} aria-sort={current}>
              {column.sortable === true && onSort !== undefined ? (
                <UnstyledButton className={classes["sort"] ?? ""} fw={600} fz="sm" title={column.label} onClick={() => onSort({ key: column.key, order: current === "ascending" ? "DESC" : "ASC" })}>
                  {column.label} {current === undefined ? "" : MARKS[current]}
                </UnstyledButton>
              ) : (
                <span className={classes["label"]} title={column.label}>
                  {column.label}
                </span>
              )}
              {filters !== undefined && (
                <input
                  className={classes["filter"]}
                  aria-label={t("Filter of {column}", { column: column.label })}
                  placeholder="…, >20, =3"
                  value={filters.values[column.key] ?? ""}
                  onChange={(event) => filters.change(column.key, event.currentTarget.value)}
                />
              )}
              <Handle resize={(width) => arrangement.resize(column.key, width)} />
            </th>
          );
        })}
        {hasActions && (
          <th className={classes["actions"]}>
            <span className={classes["label"]}>{t("Actions")}</span>
          </th>
        )}
      </tr>
    </thead>
  );
}
