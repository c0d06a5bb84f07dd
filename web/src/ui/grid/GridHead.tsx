// The head of a table: sorts, widths, and what narrows each column.

import { Checkbox, UnstyledButton } from "@mantine/core";
import { useRef, type CSSProperties, type PointerEvent, type ReactElement } from "react";
import { t } from "@/i18n";
import { NARROWEST, type Arrangement, type GridColumn } from "./columns";
import classes from "./grid.module.css";
import { sortsAfter, type GridSort } from "./sorting";

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
      const sign = getComputedStyle(event.currentTarget).direction === "rtl" ? -1 : 1;
      resize(from.current.width + sign * (event.clientX - from.current.x));
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
  sorts: readonly GridSort[];
  onSort: ((sorts: GridSort[]) => void) | undefined;
  /** Whether rows can be sorted by several columns. */
  manySorts: boolean;
  /** Where columns that stay in view are, from the beginning of the line. */
  pinStyle: (key: string) => CSSProperties | undefined;
  sticky: boolean;
  filters: { values: Readonly<Record<string, string>>; change: (key: string, value: string) => void } | undefined;
  /** How many of the loaded rows are selected; without it rows can't be. */
  selection: { state: "none" | "some" | "all"; toggle: () => void } | undefined;
  hasActions: boolean;
}

/** Rows and other headers pass below a header that stays. */
const inFront = (style: CSSProperties | undefined): CSSProperties | undefined => style && { ...style, zIndex: 3 };

/** What a header carries that is dragged onto another one. */
const CARRIED = "text/x-fieldline-column";

export function GridHead<T>({ columns, arrangement, sorts, onSort, manySorts, pinStyle, sticky, filters, selection, hasActions }: HeadProps<T>): ReactElement {
  const order = (column: GridColumn<T>): "ascending" | "descending" | undefined => {
    const own = sorts.find((sort) => sort.key === column.key);
    return own === undefined ? undefined : own.order === "ASC" ? "ascending" : "descending";
  };
  const rank = (column: GridColumn<T>): string => (sorts.length < 2 ? "" : String(sorts.findIndex((sort) => sort.key === column.key) + 1));
  return (
    <thead className={sticky ? classes["sticky"] : ""}>
      <tr>
        {selection !== undefined && (
          <th className={classes["narrow"]} style={inFront(pinStyle(""))}>
            <Checkbox size="xs" aria-label={t("Select all that are loaded")} checked={selection.state === "all"} indeterminate={selection.state === "some"} onChange={selection.toggle} />
          </th>
        )}
        {columns.map((column) => {
          const current = order(column);
          return (
            <th
              key={column.key}
              aria-sort={current}
              style={inFront(pinStyle(column.key))}
              draggable
              onDragStart={(event) => event.dataTransfer.setData(CARRIED, column.key)}
              onDragOver={(event) => event.dataTransfer.types.includes(CARRIED) && event.preventDefault()}
              onDrop={(event) => {
                event.preventDefault();
                arrangement.place(event.dataTransfer.getData(CARRIED), column.key);
              }}
            >
              {column.sortable === true && onSort !== undefined ? (
                <UnstyledButton
                  className={classes["sort"] ?? ""}
                  fw={600}
                  fz="sm"
                  title={manySorts ? t("{column}; with Shift as a further order", { column: column.label }) : column.label}
                  onClick={(event) => onSort(sortsAfter(sorts, column.key, manySorts && event.shiftKey))}
                >
                  {column.label} {current === undefined ? "" : `${MARKS[current]}${rank(column)}`}
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
