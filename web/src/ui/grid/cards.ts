// Where a table has no room for its columns side by side, as on a phone, each row becomes a card that holds them one below the other.

import { useLayoutEffect, useMemo, useState, type RefObject } from "react";
import { leastOf, pxOf, type GridColumn } from "./columns";

/** A place that is wider than this, in pixels, scrolls sideways rather than drawing cards. */
const NARROW_PX = 440;

/** Whether rows are cards: in a narrow place that the columns would not fit into. */
export function drawsCards(width: number, needed: number, scale: number): boolean {
  // What isn't laid out yet has no width.
  return width > 0 && width < NARROW_PX * scale && needed > width;
}

/** Returns the columns that a card of a row names below its first one: those that have something to say. */
export function cardColumns<T>([, ...others]: readonly GridColumn<T>[], row: T): GridColumn<T>[] {
  return others.filter((column) => (column.show !== undefined && column.leadsTo === undefined) || column.text(row) !== "");
}

/** Returns how many pixels the columns need side by side. */
export function neededWidth<T>(shown: readonly GridColumn<T>[], widths: Readonly<Record<string, number>>, scale: number): number {
  return shown.reduce((sum, column) => sum + pxOf(column, widths, scale), 0);
}

/** Returns the keys of the columns that are left out in a room of so many pixels, so that the others have their least width. */
export function leftOut<T>(shown: readonly GridColumn<T>[], widths: Readonly<Record<string, number>>, scale: number, room: number): string[] {
  const needed = shown.reduce((sum, column) => sum + leastOf(column, widths, scale), 0);
  const [first] = shown.filter(({ yields }) => yields !== undefined).sort((a, b) => (b.yields ?? 0) - (a.yields ?? 0));
  return needed <= room || first === undefined ? [] : [first.key, ...leftOut(shown.filter((column) => column !== first), widths, scale, room)];
}

/** Returns the heads of groups of a table, each with its place. */
export function groupHeads(count: number, at: (index: number) => object | undefined): [number, unknown][] {
  const heads: [number, unknown][] = [];
  for (let index = 0; index < count; index++) {
    const item = at(index);
    if (item !== undefined && "group" in item) {
      heads.push([index, item.group]);
    }
  }
  return heads;
}

/** Names what stands at a place, wherever it goes: the head of a group is not as high as a card. */
export function itemKey<T>(item: { row: T } | { group: string } | undefined, rowKey: (row: T) => string, index: number): string {
  return item === undefined ? String(index) : "group" in item ? `group ${item.group}` : `row ${rowKey(item.row)}`;
}

/** Whether what is in an element has to be drawn as cards, and which columns `without` leaves out at its width. It follows the width of the element, not that of the window. */
export function useRoom(pane: RefObject<HTMLElement | null>, needed: number, scale: number, without: (width: number) => string[]): { cards: boolean; out: ReadonlySet<string> } {
  const [cards, setCards] = useState(false);
  // As text, so that what stays the same draws nothing again.
  const [keys, setKeys] = useState("[]");
  useLayoutEffect(() => {
    const element = pane.current;
    if (element === null) {
      return undefined;
    }
    // With its scroll bar: one that comes with the cards must not take them away again.
    const measure = (): void => {
      setCards(drawsCards(element.offsetWidth, needed, scale));
      setKeys(JSON.stringify(element.clientWidth === 0 ? [] : without(element.clientWidth)));
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, [pane, needed, scale, without]);
  const out = useMemo(() => new Set(JSON.parse(keys) as string[]), [keys]);
  return { cards, out };
}
