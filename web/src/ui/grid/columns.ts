// Columns of a table that people arrange themselves: which are shown, and how wide.

import { useState, type CSSProperties, type ReactNode } from "react";

export interface GridColumn<T> {
  key: string;
  label: string;
  /** CSS width to begin with. */
  width?: string | undefined;
  sortable?: boolean;
  /** Not shown until somebody chooses it. */
  hidden?: boolean;
  /** False for one that is always shown. */
  hideable?: boolean;
  /** Text of the cell, for filters and files. */
  text: (row: T) => string;
  /** What the cell shows instead of its text. */
  show?: ((row: T) => ReactNode) | undefined;
  style?: ((row: T) => CSSProperties | undefined) | undefined;
}

export interface Arrangement {
  hidden: ReadonlySet<string>;
  widths: Readonly<Record<string, number>>;
  /** Shows a column, or no more. */
  toggle: (key: string) => void;
  /** Gives a column a width in pixels; none gives it back its own. */
  resize: (key: string, width: number | undefined) => void;
}

interface Stored {
  hidden?: string[];
  widths?: Record<string, number>;
}

const PLACE = "fieldline_columns:";
/** The narrowest column, pixels. */
export const NARROWEST = 48;

function load(name: string | undefined): Stored {
  try {
    return name === undefined ? {} : (JSON.parse(localStorage.getItem(PLACE + name) ?? "{}") as Stored);
  } catch {
    return {};
  }
}

/** Remembers in this browser how a table is arranged, under a name. */
export function useArrangement<T>(name: string | undefined, columns: readonly GridColumn<T>[]): Arrangement {
  const [stored, setStored] = useState(() => load(name));
  const hidden = new Set(stored.hidden ?? columns.filter((column) => column.hidden === true).map((column) => column.key));
  const store = (next: Stored): void => {
    setStored(next);
    if (name !== undefined) {
      localStorage.setItem(PLACE + name, JSON.stringify(next));
    }
  };
  return {
    hidden,
    widths: stored.widths ?? {},
    toggle: (key) => store({ ...stored, hidden: hidden.has(key) ? [...hidden].filter((one) => one !== key) : [...hidden, key] }),
    resize: (key, width) => {
      const { [key]: _before, ...others } = stored.widths ?? {};
      store({ ...stored, widths: width === undefined ? others : { ...others, [key]: Math.max(NARROWEST, Math.round(width)) } });
    },
  };
}
