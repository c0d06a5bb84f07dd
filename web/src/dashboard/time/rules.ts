// What whoever made a dashboard lets its readers choose of the time.

import { list, number, object, text, type Json } from "../json";
import { AGGREGATIONS, aggregationOf, type Aggregation, type TimeWindow } from "../timeWindow";
import { isCurrent, QUICK_INTERVALS } from "./calendar";
import { CALENDAR_GROUPS, groupingsOf, type Grouping } from "./grouping";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** Lengths of time that can be chosen, milliseconds, with what they are called. */
export const LENGTHS: readonly [number, string][] = [
  [MINUTE, "last minute"],
  [5 * MINUTE, "last 5 minutes"],
  [10 * MINUTE, "last 10 minutes"],
  [30 * MINUTE, "last 30 minutes"],
  [HOUR, "last hour"],
  [2 * HOUR, "last 2 hours"],
  [6 * HOUR, "last 6 hours"],
  [12 * HOUR, "last 12 hours"],
  [DAY, "last day"],
  [7 * DAY, "last 7 days"],
  [30 * DAY, "last 30 days"],
  [90 * DAY, "last 90 days"],
  [365 * DAY, "last 365 days"],
];

/** What can be chosen while the window is live, or while it shows the past. */
export interface ModeRules {
  /** Whether it can be chosen at all. */
  offered: boolean;
  last: boolean;
  quick: boolean;
  fixed: boolean;
  customLength: boolean;
  customGrouping: boolean;
  lengths: readonly [number, string][];
  quickIntervals: readonly [string, string][];
  /** Groupings for a length or a named interval, where they are restricted. */
  groupings: (window: TimeWindow) => Grouping[];
}

export interface WindowRules {
  realtime: ModeRules;
  history: ModeRules;
  aggregations: readonly Aggregation[];
  aggregation: boolean;
  grouping: boolean;
  zone: boolean;
}

function groupingsIn(config: unknown): Grouping[] | undefined {
  const stored = object(config)["aggIntervals"];
  const read = list(stored).flatMap((one): Grouping[] => {
    const length = number(one);
    const named = CALENDAR_GROUPS.find((group) => group === one);
    return length !== undefined ? [length] : named !== undefined ? [named] : [];
  });
  return Array.isArray(stored) && read.length > 0 ? read : undefined;
}

function modeRules(part: Json, live: boolean): ModeRules {
  const advanced = object(part["advancedParams"]);
  const lengths = list(advanced["allowedLastIntervals"]).flatMap((one) => number(one) ?? []);
  const names = list(advanced["allowedQuickIntervals"]).flatMap((one) => text(one) ?? []);
  const last = part["hideLastInterval"] !== true;
  const quick = part["hideQuickInterval"] !== true;
  const fixed = !live && part["hideFixedInterval"] !== true;
  return {
    offered: part["hideInterval"] !== true && (last || quick || fixed),
    last,
    quick,
    fixed,
    customLength: part["disableCustomInterval"] !== true,
    customGrouping: part["disableCustomGroupInterval"] !== true,
    lengths: lengths.length === 0 ? LENGTHS : LENGTHS.filter(([length]) => lengths.includes(length)),
    quickIntervals: QUICK_INTERVALS.filter(([name]) => (!live || isCurrent(name)) && (names.length === 0 || names.includes(name))),
    groupings: (window) => {
      const config = window.quick === undefined ? object(advanced["lastAggIntervalsConfig"])[String(window.length)] : object(advanced["quickAggIntervalsConfig"])[window.quick];
      const possible = groupingsOf(window.length);
      const allowed = groupingsIn(config);
      return allowed === undefined ? possible : allowed.filter((one) => possible.includes(one));
    },
  };
}

/** Reads what may be chosen of a stored window. */
export function rulesOf(value: unknown): WindowRules {
  const stored = object(value);
  const allowed = list(stored["allowedAggTypes"]).flatMap((one) => aggregationOf(one) ?? []);
  return {
    realtime: modeRules(object(stored["realtime"]), true),
    history: modeRules(object(stored["history"]), false),
    aggregations: allowed.length === 0 ? AGGREGATIONS : allowed,
    aggregation: stored["hideAggregation"] !== true,
    grouping: stored["hideAggInterval"] !== true,
    zone: stored["hideTimezone"] !== true,
  };
}

/** All can be chosen, as when a dashboard is edited. */
export const EVERYTHING: WindowRules = rulesOf({});

/** Whether a reader can choose anything. */
export function mayChoose(rules: WindowRules): boolean {
  return rules.realtime.offered || rules.history.offered || rules.aggregation || rules.grouping || rules.zone;
}
