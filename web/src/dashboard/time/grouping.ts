// How values of a window are grouped: by equal lengths of time, or by intervals of the calendar.

import { startOf } from "./calendar";
import { offsetOf } from "./zone";

export type CalendarGroup = "WEEK" | "WEEK_ISO" | "MONTH" | "QUARTER";
/** Milliseconds, or an interval of the calendar. */
export type Grouping = number | CalendarGroup;

export const CALENDAR_GROUPS: readonly CalendarGroup[] = ["WEEK", "WEEK_ISO", "MONTH", "QUARTER"];

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** Lengths of time that values can be grouped by, milliseconds. */
export const GROUPINGS: readonly number[] = [
  ...[1, 5, 10, 15, 30].map((n) => n * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((n) => n * MINUTE),
  ...[1, 2, 5, 6, 8, 10, 12].map((n) => n * HOUR),
  ...[1, 7, 30].map((n) => n * DAY),
];
/** A window has at most so many groups. */
const MOST = 500;

/** Returns about how long a group is, milliseconds. */
export function lengthOf(grouping: Grouping): number {
  return typeof grouping === "number" ? grouping : { WEEK: 7 * DAY, WEEK_ISO: 7 * DAY, MONTH: 30 * DAY, QUARTER: 91 * DAY }[grouping];
}

/** Returns the shortest and the longest group that a window may have, whole seconds. */
export function groupingBounds(length: number): [number, number] {
  const whole = (ms: number): number => Math.max(SECOND, Math.ceil(ms / SECOND) * SECOND);
  return [whole(length / MOST), whole(length)];
}

/** Returns the groupings that a window may have. */
export function groupingsOf(length: number): Grouping[] {
  const [least, most] = groupingBounds(length);
  return [...GROUPINGS, ...CALENDAR_GROUPS].filter((one) => lengthOf(one) >= least && lengthOf(one) <= most);
}

/** Returns the width of a group so that a window has about two hundred. */
export function intervalFor(length: number): number {
  const wanted = length / 200;
  const [least, most] = groupingBounds(length);
  const possible = GROUPINGS.filter((one) => one >= least && one <= most);
  const nearest = possible.reduce<number | undefined>((best, one) => (best === undefined || Math.abs(one - wanted) < Math.abs(best - wanted) ? one : best), undefined);
  return nearest ?? least;
}

/** Returns a grouping that a window may have: that one, or the nearest that is within its bounds. */
export function withinBounds(grouping: Grouping, length: number): Grouping {
  const [least, most] = groupingBounds(length);
  return lengthOf(grouping) < least ? least : lengthOf(grouping) > most ? most : grouping;
}

/** Returns where the group that contains a moment begins and ends. */
export function groupAt(grouping: Grouping, ts: number, zone: string | undefined): [number, number] {
  if (typeof grouping !== "number") {
    return [startOf(grouping, ts, zone), startOf(grouping, ts, zone, 1)];
  }
  // Groups of hours and days begin where clocks of the zone do.
  const offset = grouping >= HOUR ? offsetOf(ts, zone) : 0;
  const start = Math.floor((ts + offset) / grouping) * grouping - offset;
  return [start, start + grouping];
}
