// Intervals of the calendar: those that windows are named after, and those that values are grouped by.

import { clockAt, momentOf } from "./zone";

export type CalendarUnit = "HOUR" | "DAY" | "WEEK" | "WEEK_ISO" | "MONTH" | "QUARTER" | "HALF_YEAR" | "YEAR";

const UNITS = ["HOUR", "DAY", "WEEK_ISO", "WEEK", "MONTH", "QUARTER", "HALF_YEAR", "YEAR"] as const;

/** Returns when the interval that contains a moment begins, or the one that comes `later` intervals after it. */
export function startOf(unit: CalendarUnit, ts: number, zone: string | undefined, later = 0): number {
  const { year, month, date, hour, weekday } = clockAt(ts, zone);
  switch (unit) {
    case "HOUR":
      return momentOf(zone, year, month, date, hour + later);
    case "DAY":
      return momentOf(zone, year, month, date + later);
    case "WEEK":
      return momentOf(zone, year, month, date - weekday + 7 * later);
    case "WEEK_ISO":
      return momentOf(zone, year, month, date - ((weekday + 6) % 7) + 7 * later);
    case "MONTH":
      return momentOf(zone, year, month + later);
    case "QUARTER":
      return momentOf(zone, year, month - (month % 3) + 3 * later);
    case "HALF_YEAR":
      return momentOf(zone, year, month - (month % 6) + 6 * later);
    case "YEAR":
      return momentOf(zone, year + later, 0);
  }
}

/** Returns the moment that lies some months and days later, at the same time of day; what a month lacks is its last day. */
export function moved(ts: number, zone: string | undefined, months: number, days: number): number {
  const { year, month, date, hour, minute, second } = clockAt(ts, zone);
  const last = new Date(Date.UTC(year, month + months + 1, 0)).getUTCDate();
  return momentOf(zone, year, month + months, Math.min(date, last) + days, hour, minute, second) + (((ts % 1_000) + 1_000) % 1_000);
}

/** Names of the windows that follow the calendar, with what they are called. */
export const QUICK_INTERVALS: readonly [string, string][] = [
  ["YESTERDAY", "yesterday"],
  ["DAY_BEFORE_YESTERDAY", "day before yesterday"],
  ["THIS_DAY_LAST_WEEK", "this day last week"],
  ["PREVIOUS_WEEK", "previous week (from Sunday)"],
  ["PREVIOUS_WEEK_ISO", "previous week (from Monday)"],
  ["PREVIOUS_MONTH", "previous month"],
  ["PREVIOUS_QUARTER", "previous quarter"],
  ["PREVIOUS_HALF_YEAR", "previous half-year"],
  ["PREVIOUS_YEAR", "previous year"],
  ["CURRENT_HOUR", "this hour"],
  ["CURRENT_DAY", "today"],
  ["CURRENT_DAY_SO_FAR", "today so far"],
  ["CURRENT_WEEK", "this week (from Sunday)"],
  ["CURRENT_WEEK_SO_FAR", "this week so far (from Sunday)"],
  ["CURRENT_WEEK_ISO", "this week (from Monday)"],
  ["CURRENT_WEEK_ISO_SO_FAR", "this week so far (from Monday)"],
  ["CURRENT_MONTH", "this month"],
  ["CURRENT_MONTH_SO_FAR", "this month so far"],
  ["CURRENT_QUARTER", "this quarter"],
  ["CURRENT_QUARTER_SO_FAR", "this quarter so far"],
  ["CURRENT_HALF_YEAR", "this half-year"],
  ["CURRENT_HALF_YEAR_SO_FAR", "this half-year so far"],
  ["CURRENT_YEAR", "this year"],
  ["CURRENT_YEAR_SO_FAR", "this year so far"],
];

/** Whether a window with this name may be live: it must contain the present moment. */
export function isCurrent(name: string): boolean {
  return name.startsWith("CURRENT_");
}

interface Named {
  unit: CalendarUnit;
  back: number;
  soFar: boolean;
}

function read(name: string): Named {
  const day = { YESTERDAY: 1, DAY_BEFORE_YESTERDAY: 2, THIS_DAY_LAST_WEEK: 7 }[name];
  const match = /^(CURRENT|PREVIOUS)_(HOUR|DAY|WEEK_ISO|WEEK|MONTH|QUARTER|HALF_YEAR|YEAR)(_SO_FAR)?$/.exec(name);
  const unit = UNITS.find((one) => one === match?.[2]) ?? (day === undefined ? "HOUR" : "DAY");
  return { unit, back: day ?? (match?.[1] === "PREVIOUS" ? 1 : 0), soFar: match?.[3] !== undefined };
}

/** Returns first and last moment of a calendar interval that contains or precedes `now`. */
export function quickInterval(name: string, now: number, zone?: string): [number, number] {
  const { unit, back, soFar } = read(name);
  return [startOf(unit, now, zone, -back), soFar ? now : startOf(unit, now, zone, 1 - back)];
}

/** Returns the same calendar interval one earlier; of a part that goes on, the part of the same length, at most all of it. */
export function intervalBefore(name: string, now: number, zone?: string): [number, number] {
  const { unit, back, soFar } = read(name);
  const [start, end] = quickInterval(name, now, zone);
  const before = startOf(unit, now, zone, -back - 1);
  return [before, soFar ? Math.min(start, before + (end - start)) : start];
}
