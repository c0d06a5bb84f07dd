// A table that draws only the rows in view. Where its rows come from is its owner's affair: it asks for them by their place.

import { useVirtualizer } from "@tanstack/react-virtual";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, type CSSProperties, type KeyboardEvent, type ReactElement, type ReactNode } from "react";
import { EmptyState } from "@/ui/feedback";
import { useRootScale } from "@/ui/rootScale";
import { groupHeads, itemKey, leftOut, neededWidth, useRoom } from "./cards";
import { leastOf, pxOf, shownColumns, type Arrangement, type GridColumn } from "./columns";
import { copyRow, followMark, markPressed, moveMark } from "./copying";
import { GridHead } from "./GridHead";
import { Row } from "./GridRow";
import classes from "./grid.module.css";
import type { GridSort } from "./sorting";

const ROW_PX = 36;
const SELECT_PX = 36;
const ACTIONS_PX = 120;
/** The widest that columns which nobody gave a width make a table. */
const WIDEST_PX = 4_000;
/** Height that a card counts with until it is measured. */
const CARD_PX = 76;

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
  /** Height of a row, pixels of letters of the usual size. */
  rowPx?: number;
  /** Told which places are in view. */
  onRange?: (first: number, last: number) => void;
  filters?: { values: Readonly<Record<string, string>>; change: (key: string, value: string) => void } | undefined;
  selected?: { keys: ReadonlySet<string>; toggle: (row: T) => void; state: "none" | "some" | "all"; toggleAll: () => void; label?: (row: T) => string } | undefined;
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

/** Returns how the cells of each column stay in view, and how narrow those of others may be; the column of check boxes, named "", stays with the first. */
function cellStyles<T>(shown: readonly GridColumn<T>[], { pinned, widths }: Pick<Arrangement, "pinned" | "widths">, selects: boolean, scale: number): (key: string) => CSSProperties | undefined {
  const styles = new Map<string, CSSProperties>();
  let from = 0;
  const keep = (key: string, width: number): void => {
    styles.set(key, { position: "sticky", insetInlineStart: from, zIndex: 1, background: "var(--mantine-color-body)" });
    from += width;
  };
  const kept = shown.filter((column) => pinned.has(column.key));
  if (kept.length > 0 && selects) {
    keep("", SELECT_PX * scale);
  }
  for (const column of kept) {
    keep(column.key, pxOf(column, widths, scale));
  }
  for (const column of shown) {
    if (column.least !== undefined && column.whole !== true && widths[column.key] === undefined && !pinned.has(column.key)) {
      styles.set(column.key, { maxWidth: leastOf(column, widths, scale) });
    }
  }
  return (key) => styles.get(key);
}

const STEPS: Record<string, 1 | -1> = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 };
const CELLS: Record<string, 1 | -1> = { ArrowRight: 1, ArrowLeft: -1 };

export function Grid<T>(props: GridProps<T>): ReactElement {
  const { columns, arrangement, count, at, rowKey, onRange, onKey } = props;
  const pane = useRef<HTMLDivElement>(null);
  const { hidden, layout, pinned, widths } = arrangement;
  const scale = useRootScale();
  const rowPx = (props.rowPx ?? ROW_PX) * scale;
  const chosen = useMemo(() => shownColumns(columns, { hidden, layout, pinned }), [columns, hidden, layout, pinned]);
  const selects = props.selected !== undefined;
  const [selectPx, actionsPx] = [selects ? SELECT_PX * scale : 0, props.actions === undefined ? 0 : (props.actionsWidth ?? ACTIONS_PX) * scale];
  const mayYield = layout.hidden === undefined;
  const without = useCallback((width: number) => (mayYield ? leftOut(chosen, widths, scale, width - selectPx - actionsPx) : []), [mayYield, chosen, widths, scale, selectPx, actionsPx]);
  const { cards, out } = useRoom(pane, selectPx + neededWidth(chosen, widths, scale) + actionsPx, scale, without);
  const shown = useMemo(() => (cards ? chosen : chosen.filter(({ key }) => !out.has(key))), [cards, chosen, out]);
  const total = shown.reduce((sum, column) => sum + leastOf(column, widths, scale), 0);
  const cellStyle = useMemo(() => cellStyles(shown, { pinned, widths }, selects, scale), [shown, pinned, widths, selects, scale]);
  const kept = cards ? [] : shown.filter(({ key }) => pinned.has(key));
  // What is brought into view lies beside the columns that stay, and not below them.
  const keptPx = kept.length === 0 ? undefined : kept.reduce((sum, column) => sum + pxOf(column, widths, scale), selectPx);
  const itemPx = cards ? CARD_PX * scale : rowPx;
  const newest = useRef(props);
  newest.current = props;
  const heads = cards && props.onGroup !== undefined ? JSON.stringify(groupHeads(count, at)) : "";
  // Heights that were measured count no more once rows are drawn otherwise: they have other keys then. Among groups, where heads and cards
  // change places, they go with what they are of.
  const getItemKey = useCallback((index: number): string => `${itemPx} ${heads === "" ? index : itemKey(newest.current.at(index), newest.current.rowKey, index)}`, [itemPx, heads]);
  const drawn = useVirtualizer({ count, getItemKey, getScrollElement: () => pane.current, estimateSize: () => itemPx, overscan: 10, useFlushSync: false });
  const order = cards ? JSON.stringify(props.sorts ?? []) : "";
  useLayoutEffect(() => {
    if (order !== "") {
      drawn.measure();
      // What stays in view tells no change of its own height.
      pane.current?.querySelectorAll<HTMLElement>("tr[data-index]").forEach(drawn.measureElement);
    }
  }, [drawn, order]);
  const items = drawn.getVirtualItems();
  const [first, last] = [items[0]?.index ?? 0, items.at(-1)?.index ?? 0];
  useEffect(() => onRange?.(first, last), [onRange, first, last]);
  const focus = (index: number): void => {
    drawn.scrollToIndex(index);
    requestAnimationFrame(() => {
      const row = pane.current?.querySelector<HTMLElement>(`[data-index="${index}"]`);
      row?.focus({ preventScroll: true });
      followMark(pane.current, row);
    });
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
    } else if (CELLS[event.key] !== undefined) {
      event.preventDefault();
      moveMark(event.currentTarget, CELLS[event.key] ?? 1);
    } else if (event.key === "Enter") {
      props.onOpen?.(row);
    } else if (event.key === " " && props.selected !== undefined) {
      event.preventDefault();
      props.selected.toggle(row);
    } else if (onKey?.(event.key, row) === true) {
      event.preventDefault();
    }
  };
  const rowAt = (index: number): T | undefined => {
    const item = at(index);
    return item !== undefined && "row" in item ? item.row : undefined;
  };
  const newestKeys = useRef(keys);
  newestKeys.current = keys;
  const stableKeys = useRef((event: KeyboardEvent, row: T): void => newestKeys.current(event, row)).current;
  const before = items[0]?.start ?? 0;
  const after = drawn.getTotalSize() - (items.at(-1)?.end ?? 0);
  const span = (cards ? 1 : shown.length + (props.actions === undefined ? 0 : 1)) + (selects ? 1 : 0);
  return (
    <div ref={pane} className={classes["pane"]} style={keptPx === undefined ? undefined : { scrollPaddingInlineStart: keptPx }} tabIndex={count === 0 ? 0 : -1} onPointerDown={markPressed} onCopy={(event) => copyRow(event, shown, rowAt)}>
      <table
        className={`${classes["table"]} ${props.tall === true ? classes["tall"] : ""} ${cards ? classes["cards"] : ""}`}
        style={cards ? undefined : { minWidth: `max(100%, ${Math.min(total, WIDEST_PX)}px)` }}
        aria-label={props.label}
        aria-rowcount={count}
      >
        <colgroup>
          {selects && <col style={{ width: selectPx }} />}
          {cards && <col />}
          {!cards && shown.map((column) => <col key={column.key} style={{ width: pinned.has(column.key) || widths[column.key] !== undefined ? pxOf(column, widths, scale) : (column.width ?? (column.px === undefined ? undefined : column.px * scale)) }} />)}
          {!cards && props.actions !== undefined && <col style={{ width: actionsPx }} />}
        </colgroup>
        <GridHead
          columns={shown}
          arrangement={arrangement}
          sorts={props.sorts ?? []}
          onSort={props.onSort}
          manySorts={props.manySorts === true}
          cellStyle={cellStyle}
          sticky={props.sticky !== false}
          filters={props.filters}
          selection={props.selected === undefined ? undefined : { state: props.selected.state, toggle: props.selected.toggleAll }}
          hasActions={props.actions !== undefined}
          cards={cards}
        />
        <tbody>
          {before > 0 && <tr style={{ height: before }} aria-hidden />}
          {items.map(({ index }) => {
            const item = at(index);
            if (item === undefined) {
              return <tr key={`place ${index}`} style={{ height: itemPx }} aria-hidden />;
            }
            return "group" in item ? (
              <tr key={`group ${item.group}`} ref={cards ? drawn.measureElement : undefined} data-index={index} className={classes["group"]} style={{ height: rowPx }}>
                <td colSpan={span}>
                  <button type="button" className={classes["groupButton"]} aria-expanded={item.open} onClick={() => props.onGroup?.(item.group)}>
                    {item.open ? "▾" : "▸"} {item.label} ({item.count})
                  </button>
                </td>
              </tr>
            ) : (
              <Row
                key={rowKey(item.row)}
                row={item.row}
                index={index}
                newest={newest}
                version={props.version}
                isSelected={props.selected?.keys.has(rowKey(item.row)) === true}
                isCard={cards}
                height={rowPx}
                columns={shown}
                cellStyle={cellStyle}
                onKeys={stableKeys}
                measure={cards || props.tall === true ? drawn.measureElement : undefined}
              />
            );
          })}
          {after > 0 && <tr style={{ height: after }} aria-hidden />}
        </tbody>
      </table>
      {count === 0 && <EmptyState>{props.empty}</EmptyState>}
    </div>
  );
}
