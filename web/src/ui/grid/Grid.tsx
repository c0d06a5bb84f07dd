// A table that draws only the rows in view. Where its rows come from is its owner's affair: it asks for them by their place.

import { useVirtualizer } from "@tanstack/react-virtual";
import { memo, useEffect, useMemo, useRef, type CSSProperties, type KeyboardEvent, type ReactElement, type ReactNode, type RefObject } from "react";
import { t } from "@/i18n";
import { EmptyState } from "@/ui/feedback";
import { shownColumns, USUAL_PX, type Arrangement, type GridColumn } from "./columns";
import { GridHead } from "./GridHead";
import classes from "./grid.module.css";
import type { GridSort } from "./sorting";

const ROW_PX = 36;
const SELECT_PX = 36;

/** A row, or the head of a group of rows. */
export type GridItem<T> = { row: T } | { group: string; label: string; count: number; open: boolean };

export interface GridProps<T> {
  label: string;
  columns: readonly GridColumn<T>[];
  arrangement: Arrangement;
  count: number;
  /** What stands at a place; nothing as long as it is not loaded. */
  at: (index: number) => GridItem<T> | undefined;
  rowKey: (row: T) => string;
  /** What rows are drawn from besides their own values: when it changes, all are drawn again. */
  version?: unknown;
  sorts?: readonly GridSort[];
  onSort?: ((sorts: GridSort[]) => void) | undefined;
  /** Whether rows can be sorted by several columns. */
  manySorts?: boolean;
  /** Height of a row, pixels. */
  rowPx?: number;
  /** Told which places are in view. */
  onRange?: (first: number, last: number) => void;
  filters?: { values: Readonly<Record<string, string>>; change: (key: string, value: string) => void } | undefined;
  selected?: { keys: ReadonlySet<string>; toggle: (row: T) => void; state: "none" | "some" | "all"; toggleAll: () => void } | undefined;
  onOpen?: ((row: T) => void) | undefined;
  onDoubleClick?: ((row: T) => void) | undefined;
  /** Told the place of the column among `columns`, wherever it is shown. */
  onCell?: ((row: T, column: number) => void) | undefined;
  onGroup?: (group: string) => void;
  /** What further keys do on a row; true if it did something. */
  onKey?: (key: string, row: T) => boolean;
  rowStyle?: ((row: T) => CSSProperties | undefined) | undefined;
  actions?: ((row: T) => ReactNode) | undefined;
  actionsWidth?: number;
  /** Whether rows may be higher than one line. */
  tall?: boolean;
  sticky?: boolean;
  empty: ReactNode;
}

interface RowProps<T> {
  row: T;
  index: number;
  /** What the table was given last: a row that is not drawn again still does what is right now. */
  newest: RefObject<GridProps<T>>;
  version: unknown;
  isSelected: boolean;
  columns: readonly GridColumn<T>[];
  pinStyle: (key: string) => CSSProperties | undefined;
  onKeys: (event: KeyboardEvent, row: T) => void;
  measure: ((element: HTMLElement | null) => void) | undefined;
}

function RowView<T>({ row, index, newest, isSelected, columns, pinStyle, onKeys, measure }: RowProps<T>): ReactElement {
  const { rowKey, selected, onOpen, onCell, rowStyle, actions, rowPx } = newest.current;
  return (
    <tr
      ref={measure}
      tabIndex={0}
      data-index={index}
      data-row={rowKey(row)}
      aria-rowindex={index + 2}
      aria-selected={selected === undefined ? undefined : isSelected}
      className={`${classes["row"]} ${onOpen === undefined ? "" : classes["opens"]}`}
      style={{ height: rowPx ?? ROW_PX, ...rowStyle?.(row) }}
      onKeyDown={(event) => onKeys(event, row)}
      onClick={() => newest.current.onOpen?.(row)}
      onDoubleClick={() => newest.current.onDoubleClick?.(row)}
    >
      {selected !== undefined && (
        <td style={pinStyle("")} onClick={(event) => event.stopPropagation()}>
          <input type="checkbox" className={classes["check"]} tabIndex={-1} aria-label={t("Select")} checked={isSelected} onChange={() => newest.current.selected?.toggle(row)} />
        </td>
      )}
      {columns.map((column) => (
        <td key={column.key} data-column={column.key} style={{ ...column.style?.(row), ...pinStyle(column.key) }} title={column.show === undefined ? column.text(row) : undefined} onClick={onCell === undefined ? undefined : () => newest.current.onCell?.(row, newest.current.columns.indexOf(column))}>
          {column.show === undefined ? column.text(row) : column.show(row)}
        </td>
      ))}
      {actions !== undefined && (
        <td className={classes["actions"]} onClick={(event) => event.stopPropagation()} onDoubleClick={(event) => event.stopPropagation()}>
          <div className={classes["acts"]}>{actions(row)}</div>
        </td>
      )}
    </tr>
  );
}

/** A row is drawn again when it is another object, or when the table says that all are. */
const Row = memo(RowView, (before, after) => before.row === after.row && before.index === after.index && before.isSelected === after.isSelected && before.version === after.version && before.columns === after.columns && before.pinStyle === after.pinStyle) as typeof RowView;

/** Returns how the cells of each column stay in view; the column of check boxes, named "", does so with them. */
function pinStyles<T>(shown: readonly GridColumn<T>[], { pinned, widths }: Pick<Arrangement, "pinned" | "widths">, selects: boolean): (key: string) => CSSProperties | undefined {
  const styles = new Map<string, CSSProperties>();
  let from = 0;
  const keep = (key: string, width: number): void => {
    styles.set(key, { position: "sticky", insetInlineStart: from, zIndex: 1, background: "var(--mantine-color-body)" });
    from += width;
  };
  const kept = shown.filter((column) => pinned.has(column.key));
  if (kept.length > 0 && selects) {
    keep("", SELECT_PX);
  }
  for (const column of kept) {
    keep(column.key, widths[column.key] ?? USUAL_PX);
  }
  return (key) => styles.get(key);
}

const STEPS: Record<string, 1 | -1> = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 };

export function Grid<T>(props: GridProps<T>): ReactElement {
  const { columns, arrangement, count, at, rowKey, onRange, onKey } = props;
  const pane = useRef<HTMLDivElement>(null);
  const { hidden, layout, pinned, widths } = arrangement;
  const rowPx = props.rowPx ?? ROW_PX;
  const shown = useMemo(() => shownColumns(columns, { hidden, layout, pinned }), [columns, hidden, layout, pinned]);
  const selects = props.selected !== undefined;
  const pinStyle = useMemo(() => pinStyles(shown, { pinned, widths }, selects), [shown, pinned, widths, selects]);
  const drawn = useVirtualizer({ count, getScrollElement: () => pane.current, estimateSize: () => rowPx, overscan: 10, useFlushSync: false });
  const items = drawn.getVirtualItems();
  const [first, last] = [items[0]?.index ?? 0, items.at(-1)?.index ?? 0];
  useEffect(() => onRange?.(first, last), [onRange, first, last]);
  const focus = (index: number): void => {
    drawn.scrollToIndex(index);
    requestAnimationFrame(() => pane.current?.querySelector<HTMLElement>(`[data-index="${index}"]`)?.focus({ preventScroll: true }));
  };
  const keys = (event: KeyboardEvent, row: T): void => {
    if (event.target !== event.currentTarget || event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    const step = STEPS[event.key];
    if (step !== undefined) {
      event.preventDefault();
      let next = Number(event.currentTarget.getAttribute("data-index")) + step;
      while (next >= 0 && next < count && "group" in (at(next) ?? {})) {
        next += step;
      }
      if (next >= 0 && next < count) {
        focus(next);
      }
    } else if (event.key === "Enter") {
      props.onOpen?.(row);
    } else if (event.key === " " && props.selected !== undefined) {
      event.preventDefault();
      props.selected.toggle(row);
    } else if (onKey?.(event.key, row) === true) {
      event.preventDefault();
    }
  };
  const newestKeys = useRef(keys);
  newestKeys.current = keys;
  const stableKeys = useRef((event: KeyboardEvent, row: T): void => newestKeys.current(event, row)).current;
  const newest = useRef(props);
  newest.current = props;
  const before = items[0]?.start ?? 0;
  const after = drawn.getTotalSize() - (items.at(-1)?.end ?? 0);
  const span = shown.length + (props.selected === undefined ? 0 : 1) + (props.actions === undefined ? 0 : 1);
  const total = shown.reduce((sum, column) => sum + (widths[column.key] ?? USUAL_PX), 0);
  return (
    <div ref={pane} className={classes["pane"]} tabIndex={count === 0 ? 0 : -1}>
      <table className={`${classes["table"]} ${props.tall === true ? classes["tall"] : ""}`} style={{ minWidth: `max(100%, ${Math.min(total, 4_000)}px)` }} aria-label={props.label} aria-rowcount={count}>
        <colgroup>
          {props.selected !== undefined && <col style={{ width: SELECT_PX }} />}
          {shown.map((column) => (
            <col key={column.key} style={{ width: widths[column.key] ?? (pinned.has(column.key) ? USUAL_PX : column.width) }} />
          ))}
          {props.actions !== undefined && <col style={{ width: props.actionsWidth ?? 120 }} />}
        </colgroup>
        <GridHead
          columns={shown}
          arrangement={arrangement}
          sorts={props.sorts ?? []}
          onSort={props.onSort}
          manySorts={props.manySorts === true}
          pinStyle={pinStyle}
          sticky={props.sticky !== false}
          filters={props.filters}
          selection={props.selected === undefined ? undefined : { state: props.selected.state, toggle: props.selected.toggleAll }}
          hasActions={props.actions !== undefined}
        />
        <tbody>
          {before > 0 && <tr style={{ height: before }} aria-hidden />}
          {items.map(({ index }) => {
            const item = at(index);
            if (item === undefined) {
              return <tr key={`place ${index}`} style={{ height: rowPx }} aria-hidden />;
            }
            return "group" in item ? (
              <tr key={`group ${item.group}`} className={classes["group"]} style={{ height: rowPx }}>
                <td colSpan={span}>
                  <button type="button" className={classes["groupButton"]} aria-expanded={item.open} onClick={() => props.onGroup?.(item.group)}>
                    {item.open ? "▾" : "▸"} {item.label} ({item.count})
                  </button>
                </td>
              </tr>
            ) : (
              <Row key={rowKey(item.row)} row={item.row} index={index} newest={newest} version={props.version} isSelected={props.selected?.keys.has(rowKey(item.row)) === true} columns={shown} pinStyle={pinStyle} onKeys={stableKeys} measure={props.tall === true ? drawn.measureElement : undefined} />
            );
          })}
          {after > 0 && <tr style={{ height: after }} aria-hidden />}
        </tbody>
      </table>
      {count === 0 && <EmptyState>{props.empty}</EmptyState>}
    </div>
  );
}
