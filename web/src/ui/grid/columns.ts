// Columns of a table that people arrange themselves: which are shown, in which order, how wide, and which stay in view.

import { useMemo, useState, type CSSProperties, type ReactNode } from "react";
import { formatNumber } from "@/i18n";

export interface GridColumn<T> {
  key: string;
  label: string;
  /** CSS width to begin with. */
  width?: string | undefined;
  /** How wide it begins where nothing else says so, in pixels of letters of the usual size: what it says is cut below that, and others give way. */
  px?: number | undefined;
  /** How far it gives way where others need room, counted like `px`; otherwise it doesn't. */
  least?: number | undefined;
  /** Whether it is never cut, even where it gives way. */
  whole?: boolean | undefined;
  /** Left out where there is no room for all columns, those with the highest number first, until somebody chooses columns. */
  yields?: number | undefined;
  sortable?: boolean;
  /** Not shown until somebody chooses it. */
  hidden?: boolean;
  /** False for one that is always shown. */
  hideable?: boolean;
  /** Text of the cell, for filters and files. */
  text: (row: T) => string;
  /** What rows are sorted by in the browser, where it isn't the text. */
  value?: ((row: T) => string | number) | undefined;
  /** The entity whose name the cell has; it leads there. */
  leadsTo?: ((row: T) => { entityType: string; id: string } | undefined) | undefined;
  /** What the cell shows instead of its text. */
  show?: ((row: T) => ReactNode) | undefined;
  style?: ((row: T) => CSSProperties | undefined) | undefined;
}

/** What a column of numbers has. Files and copies take numbers as they are: "1.234" of a German would be little more than one to whoever reads it. */
export const ofNumber = <T>(value: (row: T) => number): Pick<GridColumn<T>, "text" | "value" | "show"> => ({ text: (row) => String(value(row)), value, show: (row) => formatNumber(value(row)) });

/** How somebody has arranged a table. What is missing is as the table has it of itself. */
export interface Layout {
  hidden?: string[];
  /** Pixels. */
  widths?: Record<string, number>;
  /** Keys from first to last; columns that are not named follow. */
  order?: string[];
  /** Columns that stay at the beginning of the line while others scroll. */
  pinned?: string[];
}

export interface Arrangement {
  layout: Layout;
  hidden: ReadonlySet<string>;
  widths: Readonly<Record<string, number>>;
  pinned: ReadonlySet<string>;
  /** Shows a column, or no more. */
  toggle: (key: string) => void;
  /** Gives a column a width in pixels; none gives it back its own. */
  resize: (key: string, width: number | undefined) => void;
  /** Puts a column where another one is. */
  place: (key: string, where: string) => void;
  /** Moves a column one place on, or back. */
  step: (key: string, by: 1 | -1) => void;
  /** Keeps a column in view, or no more. */
  pin: (key: string) => void;
  /** Takes over a whole arrangement. */
  adopt: (layout: Layout) => void;
}

const PLACE = "fieldline_columns:";
/** The narrowest column, pixels. */
export const NARROWEST = 48;
/** How wide a column counts that nobody gave a width, pixels. */
export const USUAL_PX = 140;

/** Returns how wide a column counts, in pixels. */
export const pxOf = <T>({ key, px }: GridColumn<T>, widths: Readonly<Record<string, number>>, scale: number): number => widths[key] ?? (px ?? USUAL_PX) * scale;

/** Returns how wide a column is at least, in pixels. */
export const leastOf = <T>({ key, px, least }: GridColumn<T>, widths: Readonly<Record<string, number>>, scale: number): number => widths[key] ?? (least ?? px ?? USUAL_PX) * scale;

const record = (value: unknown): Record<string, unknown> => (typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {});

/** Reads a stored arrangement; what isn't one is left out. */
export function readLayout(value: unknown): Layout {
  const { hidden, widths, order, pinned } = record(value);
  const texts = (list: unknown): string[] | undefined => (Array.isArray(list) ? list.filter((one) => typeof one === "string") : undefined);
  const own = { hidden: texts(hidden), order: texts(order), pinned: texts(pinned) };
  const pixels = Object.entries(record(widths)).flatMap(([key, width]) => (typeof width === "number" && Number.isFinite(width) ? [[key, Math.max(NARROWEST, width)] as const] : []));
  return {
    ...Object.fromEntries(Object.entries(own).filter(([, list]) => list !== undefined)),
    ...(widths === undefined ? {} : { widths: Object.fromEntries(pixels) }),
  };
}

function load(name: string | undefined): Layout {
  try {
    return name === undefined ? {} : readLayout(JSON.parse(localStorage.getItem(PLACE + name) ?? "{}"));
  } catch {
    return {};
  }
}

/** Returns the keys of columns in the order of a layout. */
export function orderOf(keys: readonly string[], order: readonly string[] | undefined): string[] {
  const known = (order ?? []).filter((key) => keys.includes(key));
  return [...known, ...keys.filter((key) => !known.includes(key))];
}

/** Returns the columns that are shown, in their order: those that stay in view come first. */
export function shownColumns<T>(columns: readonly GridColumn<T>[], { hidden, layout, pinned }: Pick<Arrangement, "hidden" | "layout" | "pinned">): GridColumn<T>[] {
  const byKey = new Map(columns.map((column) => [column.key, column]));
  const all = orderOf([...byKey.keys()], layout.order).flatMap((key) => byKey.get(key) ?? []);
  const shown = all.filter((column) => column.hideable === false || !hidden.has(column.key));
  return [...shown.filter((column) => pinned.has(column.key)), ...shown.filter((column) => !pinned.has(column.key))];
}

/** Puts one key where another one is, the others closing up. */
export function placed(keys: readonly string[], key: string, where: string): string[] {
  const [from, to] = [keys.indexOf(key), keys.indexOf(where)];
  if (from < 0 || to < 0) {
    return [...keys];
  }
  const others = keys.filter((one) => one !== key);
  return [...others.slice(0, to), key, ...others.slice(to)];
}

/** Remembers in this browser how a table is arranged, under a name; `given` is an arrangement that counts until it is changed. */
export function useArrangement<T>(name: string | undefined, columns: readonly GridColumn<T>[], given?: Layout): Arrangement {
  const [layout, setLayout] = useState(() => given ?? load(name));
  return useMemo(() => {
    const hidden = new Set(layout.hidden ?? columns.filter((column) => column.hidden === true).map((column) => column.key));
    const pinned = new Set(layout.pinned ?? []);
    const adopt = (next: Layout): void => {
      setLayout(next);
      if (name !== undefined) {
        localStorage.setItem(PLACE + name, JSON.stringify(next));
      }
    };
    const order = orderOf(columns.map((column) => column.key), layout.order);
    const flipped = (keys: ReadonlySet<string>, key: string): string[] => (keys.has(key) ? [...keys].filter((one) => one !== key) : [...keys, key]);
    return {
      layout,
      hidden,
      pinned,
      widths: layout.widths ?? {},
      toggle: (key) => adopt({ ...layout, hidden: flipped(hidden, key) }),
      resize: (key, width) => {
        const { [key]: _before, ...others } = layout.widths ?? {};
        adopt({ ...layout, widths: width === undefined ? others : { ...others, [key]: Math.max(NARROWEST, Math.round(width)) } });
      },
      place: (key, where) => adopt({ ...layout, order: placed(order, key, where) }),
      step: (key, by) => {
        const where = order[order.indexOf(key) + by];
        if (where !== undefined) {
          adopt({ ...layout, order: placed(order, key, where) });
        }
      },
      pin: (key) => adopt({ ...layout, pinned: flipped(pinned, key) }),
      adopt,
    };
  }, [layout, columns, name]);
}
