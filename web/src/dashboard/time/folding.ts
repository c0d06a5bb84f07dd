// New values of a live window, folded into the groups that its points stand for.

import type { Point } from "../source";
import type { Aggregation } from "../timeWindow";
import { groupAt, type Grouping } from "./grouping";

/** How the points of one key are grouped, and of how many values its newest group is. */
export interface Folding {
  kind: Aggregation;
  grouping: Grouping;
  zone: string | undefined;
  /** Values of the group that begins at a moment. */
  counts: Map<number, number>;
}

/** Where a group has its point. */
export function middleOf([from, to]: [number, number]): number {
  return from + Math.floor((to - from) / 2);
}

function joined(kind: Aggregation, before: number, count: number, value: number): number {
  switch (kind) {
    case "MIN":
      return Math.min(before, value);
    case "MAX":
      return Math.max(before, value);
    case "SUM":
      return before + value;
    case "COUNT":
      return before + 1;
    default:
      return before + (value - before) / (count + 1);
  }
}

/** Returns points, oldest first, with a new value in the group that it belongs to. */
export function fold(points: readonly Point[], added: Point, folding: Folding): Point[] {
  const { kind, grouping, zone, counts } = folding;
  const group = groupAt(grouping, added.ts, zone);
  const [start, end] = group;
  const value = Number(added.value);
  const isNumber = added.value.trim() !== "" && Number.isFinite(value);
  if (kind !== "COUNT" && !isNumber) {
    // Words can't be added up, so the newest one stands for its group.
    return [...points.filter((point) => point.ts < start || point.ts >= end), { ts: middleOf(group), value: added.value }].sort((a, b) => a.ts - b.ts);
  }
  const at = points.findLastIndex((point) => point.ts >= start && point.ts < end);
  const known = points[at];
  const count = counts.get(start) ?? (known === undefined ? 0 : 1);
  counts.set(start, count + 1);
  if (known === undefined) {
    const made = { ts: middleOf(group), value: kind === "COUNT" ? "1" : added.value };
    const next = points.findIndex((point) => point.ts >= end);
    return next < 0 ? [...points, made] : [...points.slice(0, next), made, ...points.slice(next)];
  }
  return points.with(at, { ts: known.ts, value: String(joined(kind, Number(known.value), count, value)) });
}
