// Series laid side by side on all of their moments, as the drawing wants them: thinned where nobody could see all of it, and stacked.

import type { Series } from "./series";

type Column = Pick<Series, "times" | "values">;
export type Table = [number[], ...(number | null)[][]];

/** Keeps the least and the greatest value of each stretch of a series that has more points than the width of a drawing shows. */
export function thinned({ times, values }: Column, most: number): Column {
  if (times.length <= most * 2) {
    return { times, values };
  }
  const kept: Column = { times: [], values: [] };
  const size = Math.ceil(times.length / most);
  const add = (at: number): void => {
    kept.times.push(times[at] ?? 0);
    kept.values.push(values[at] ?? null);
  };
  for (let start = 0; start < times.length; start += size) {
    const end = Math.min(times.length, start + size);
    let [low, high] = [start, start];
    for (let at = start; at < end; at++) {
      const value = values[at] ?? null;
      if (value !== null) {
        low = value < (values[low] ?? Infinity) ? at : low;
        high = value > (values[high] ?? -Infinity) ? at : high;
      }
    }
    [...new Set([Math.min(low, high), Math.max(low, high)])].forEach(add);
  }
  return kept;
}

/** Lays series side by side on all of their moments, in seconds; where one has no point it has none. */
export function tableOf(series: readonly Column[]): Table {
  const [only] = series;
  if (series.length === 1 && only !== undefined) {
    return [only.times.map((ts) => ts / 1_000), only.values];
  }
  const all = Float64Array.from(series.flatMap((one) => one.times)).sort();
  const times = [...all.filter((ts, n) => n === 0 || ts !== all[n - 1])];
  const columns = series.map((one) => {
    let at = 0;
    return times.map((ts) => {
      if (one.times[at] !== ts) {
        return null;
      }
      const value = one.values[at] ?? null;
      at++;
      return value;
    });
  });
  return [times.map((ts) => ts / 1_000), ...columns];
}

/** Adds up columns of the same group from the first to the last; those without a group stay. Values that lack a moment add nothing to it. */
export function stacked(table: Table, groups: (string | undefined)[]): Table {
  const sums = new Map<string, number[]>();
  const columns = table.slice(1).map((column, n) => {
    const group = groups[n];
    if (group === undefined) {
      return column;
    }
    const sum = sums.get(group) ?? new Array<number>(table[0].length).fill(0);
    sums.set(group, sum);
    return column.map((value, at) => {
      if (value === null) {
        return null;
      }
      sum[at] = (sum[at] ?? 0) + value;
      return sum[at] ?? null;
    });
  });
  return [table[0], ...columns];
}

/** Returns where in a column the nearest point to a place lies, within the moments `low` to `high`; none if there is none. */
export function nearestPoint(column: readonly (number | null | undefined)[], times: readonly number[], at: number, x: number): number | null {
  let [before, after] = [at, at];
  while (before >= 0 && (column[before] ?? null) === null) {
    before--;
  }
  while (after < column.length && (column[after] ?? null) === null) {
    after++;
  }
  const gap = (n: number): number => (n < 0 || n >= column.length ? Infinity : Math.abs((times[n] ?? 0) - x));
  return gap(before) === Infinity && gap(after) === Infinity ? null : gap(before) <= gap(after) ? before : after;
}
