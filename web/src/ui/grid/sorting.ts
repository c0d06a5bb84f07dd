// What the rows of a table are sorted by: one column, or several, the first of which counts most.

import type { GridColumn } from "./columns";

export interface GridSort {
  key: string;
  order: "ASC" | "DESC";
}

/** Most columns that rows are sorted by. */
const MOST_SORTS = 4;

/** Returns what rows are sorted by after somebody chose a column: it alone, or `further` to those before. A third choice takes a further one away. */
export function sortsAfter(sorts: readonly GridSort[], key: string, further: boolean): GridSort[] {
  const own = sorts.find((sort) => sort.key === key);
  const other: GridSort = { key, order: own?.order === "ASC" ? "DESC" : "ASC" };
  if (!further || sorts.length === 0) {
    return [other];
  }
  if (own === undefined) {
    return [...sorts, other].slice(0, MOST_SORTS);
  }
  return own.order === "DESC" && sorts.length > 1 ? sorts.filter((sort) => sort !== own) : sorts.map((sort) => (sort === own ? other : sort));
}

const collator = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });

/** Compares rows by columns in turn. */
export function comparing<T>(columns: readonly GridColumn<T>[], sorts: readonly GridSort[]): (a: T, b: T) => number {
  const steps = sorts.flatMap(({ key, order }) => {
    const column = columns.find((one) => one.key === key);
    return column === undefined ? [] : [{ read: column.value ?? column.text, sign: order === "ASC" ? 1 : -1 }];
  });
  return (a, b) => {
    for (const { read, sign } of steps) {
      const [x, y] = [read(a), read(b)];
      const result = typeof x === "number" && typeof y === "number" ? x - y : collator.compare(String(x), String(y));
      if (result !== 0) {
        return sign * result;
      }
    }
    return 0;
  };
}
