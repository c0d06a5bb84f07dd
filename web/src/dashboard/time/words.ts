// Windows and lengths of time in words.

import { currentLanguage, t } from "@/i18n";
import { dateFormat } from "@/i18n/formats";
import type { TimeWindow } from "../timeWindow";
import { boundsOf } from "../timeWindow";
import { QUICK_INTERVALS } from "./calendar";
import type { Grouping } from "./grouping";
import { LENGTHS } from "./rules";
import { isZone, knownMoment } from "./zone";

const UNITS: readonly [number, string][] = [
  [86_400_000, "{n} d"],
  [3_600_000, "{n} h"],
  [60_000, "{n} min"],
  [1_000, "{n} s"],
];

/** Returns a length of time in short words, such as `1 d 2 h`. */
export function lengthText(ms: number): string {
  let rest = ms;
  const parts = UNITS.flatMap(([unit, name]) => {
    const n = Math.floor(rest / unit);
    rest -= n * unit;
    return n === 0 ? [] : [t(name, { n })];
  });
  return parts.length === 0 ? t("{n} ms", { n: Math.round(ms) }) : parts.slice(0, 2).join(" ");
}

/** Returns what values are grouped by, in words. */
export function groupingText(grouping: Grouping): string {
  return typeof grouping === "number" ? lengthText(grouping) : t({ WEEK: "week (from Sunday)", WEEK_ISO: "week (from Monday)", MONTH: "month", QUARTER: "quarter" }[grouping]);
}

const zoneOption = (zone: string | undefined): Intl.DateTimeFormatOptions => (zone === undefined || !isZone(zone) ? {} : { timeZone: zone });

/** Returns a moment with date and time as the zone's clocks show it. */
export function momentText(ts: number, zone: string | undefined, options: Intl.DateTimeFormatOptions = { dateStyle: "medium", timeStyle: "short" }): string {
  return dateFormat(currentLanguage(), { ...options, ...zoneOption(zone) }).format(knownMoment(ts));
}

/** Returns a window in words. */
export function windowText(window: TimeWindow): string {
  if (window.all) {
    return t("for all time");
  }
  const quick = QUICK_INTERVALS.find(([name]) => name === window.quick);
  if (window.quick !== undefined) {
    return t(quick?.[1] ?? window.quick);
  }
  if (window.end !== undefined) {
    const [from, to] = boundsOf(window, 0);
    const format = dateFormat(currentLanguage(), { dateStyle: "medium", timeStyle: "short", ...zoneOption(window.zone) });
    return format.formatRange(knownMoment(from), knownMoment(to));
  }
  const known = LENGTHS.find(([length]) => length === window.length);
  return known === undefined ? t("last {length}", { length: lengthText(window.length) }) : t(known[1]);
}
