// The head of a table: sorts, widths, and what narrows each column.

import { UnstyledButton } from "@mantine/core";
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

interface Filters {
  values: Readonly<Record<string, string>>;
  change: (key: string, value: string) => void;
}

function FilterInput<T>({ column, filters, placeholder }: { column: GridColumn<T>; filters: Filters; placeholder: string }): ReactElement {
  return (
    <input
      className={classes["filter"]}
      aria-label={t("Filter of {column}", { column: column.label })}
      placeholder={placeholder}
      value={filters.values[column.key] ?? ""}
      onChange={(event) => filters.change(column.key, event.currentTarget.value)}
    />
  );
}

/** What cards are in order of, as one choice: there are no headers to press. */
function CardSort<T>({ columns, sorts, onSort }: Pick<HeadProps<T>, "columns" | "sorts" | "onSort">): ReactElement {
  const sortable = columns.filter((column) => column.sortable === true);
  const [current] = sorts;
  if (onSort === undefined || sortable.length === 0) {
    return <span className={classes["label"]}>{columns[0]?.label}</span>;
  }
  const known = current !== undefined && sortable.some((column) => column.key === current.key);
  const choose = (chosen: string): void => {
    const [order, ...key] = chosen.split(" ");
    onSort([{ key: key.join(" "), order: order === "DESC" ? "DESC" : "ASC" }]);
  };
  return (
    <select className={classes["cardSort"]} aria-label={t("Sort by")} value={known ? `${current.order} ${current.key}` : ""} onChange={(event) => choose(event.currentTarget.value)}>
      {!known && <option value="" disabled hidden />}
      {sortable.flatMap((column) =>
        (["ASC", "DESC"] as const).map((order) => (
          <option key={`${order} ${column.key}`} value={`${order} ${column.key}`}>
            {column.label} {MARKS[order === "ASC" ? "ascending" : "descending"]}
          </option>
        )),
      )}
    </select>
  );
}

interface HeadProps<T> {
  columns: readonly GridColumn<T>[];
  arrangement: Arrangement;
  sorts: readonly GridSort[];
  onSort: ((sorts: GridSort[]) => void) | undefined;
  /** Whether rows can be sorted by several columns. */
  manySorts: boolean;
  /** Where columns that stay in view are, from the beginning of the line, and how narrow others may be. */
  cellStyle: (key: string) => CSSProperties | undefined;
  sticky: boolean;
  filters: Filters | undefined;
  /** How many of the loaded rows are selected; without it rows can't be. */
  selection: { state: "none" | "some" | "all"; toggle: () => void } | undefined;
  hasActions: boolean;
  /** Whether the rows are cards: then there is one header above them all. */
  cards: boolean;
}

/** Rows and other headers pass below a header that stays. */
const inFront = (style: CSSProperties | undefined): CSSProperties | undefined => (style?.position === undefined ? style : { ...style, zIndex: 3 });

/** What a header carries that is dragged onto another one. */
const CARRIED = "text/x-fieldline-column";

export function GridHead<T>({ columns, arrangement, sorts, onSort, manySorts, cellStyle, sticky, filters, selection, hasActions, cards }: HeadProps<T>): ReactElement {
  const order = (column: GridColumn<T>): "ascending" | "descending" | undefined => {
    const own = sorts.find((sort) => sort.key === column.key);
    return own === undefined ? undefined : own.order === "ASC" ? "ascending" : "descending";
  };
  const rank = (column: GridColumn<T>): string => (sorts.length < 2 ? "" : String(sorts.findIndex((sort) => sort.key === column.key) + 1));
  return (
    <thead className={sticky ? classes["sticky"] : ""}>
      <tr>
        {selection !== undefined && (
          <th className={classes["narrow"]} style={cards ? undefined : inFront(cellStyle(""))}>
            <input
              ref={(box) => void (box !== null && (box.indeterminate = selection.state === "some"))}
              type="checkbox"
              className={classes["check"]}
              aria-label={t("Select all that are loaded")}
              checked={selection.state === "all"}
              onChange={selection.toggle}
            />
          </th>
        )}
        {cards && (
          <th>
            <CardSort columns={columns} sorts={sorts} onSort={onSort} />
            {filters !== undefined && columns.map((column) => <FilterInput key={column.key} column={column} filters={filters} placeholder={`${column.label}: >20, =3`} />)}
          </th>
        )}
        {(cards ? [] : columns).map((column) => {
          const current = order(column);
          return (
            <th
              key={column.key}
              aria-sort={current}
              style={inFront(cellStyle(column.key))}
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
              {filters !== undefined && <FilterInput column={column} filters={filters} placeholder="…, >20, =3" />}
              <Handle resize={(width) => arrangement.resize(column.key, width)} />
            </th>
          );
        })}
        {!cards && hasActions && (
          <th className={classes["actions"]}>
            <span className={classes["label"]}>{t("Actions")}</span>
          </th>
        )}
      </tr>
    </thead>
  );
}
