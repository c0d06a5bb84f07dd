// The stretch of time that a dashboard or a widget shows.

import { number, object, text, type Json } from "./model";
import { quickInterval } from "./time/calendar";
import { CALENDAR_GROUPS, groupAt, intervalFor, lengthOf, withinBounds, type Grouping } from "./time/grouping";
import { isZone, knownMoment } from "./time/zone";

export { intervalFor } from "./time/grouping";
export { quickInterval } from "./time/calendar";

export const AGGREGATIONS = ["NONE", "AVG", "MIN", "MAX", "SUM", "COUNT"] as const;
export type Aggregation = (typeof AGGREGATIONS)[number];

export interface TimeWindow {
  realtime: boolean;
  /** Length, milliseconds; of fixed windows the distance of their ends. */
  length: number;
  /** Last moment of a fixed window. */
  end: number | undefined;
  /** Calendar interval, such as `CURRENT_DAY`. */
  quick: string | undefined;
  /** Everything that is stored. */
  all: boolean;
  aggregation: Aggregation;
  interval: Grouping;
  limit: number;
  /** Whose midnights count; those of the browser if none is named. */
  zone: string | undefined;
}

const HOUR = 3_600_000;
/** The greatest length of a window, a hundred years. */
export const MOST_LENGTH = 36_525 * 24 * HOUR;
export const LIMIT = 25_000;
/** The most points that the server gives for a key. */
export const MOST_POINTS = 50_000;

function groupingOf(value: unknown): Grouping | undefined {
  const length = number(value);
  return length !== undefined && length > 0 ? length : CALENDAR_GROUPS.find((one) => one === value);
}

export function aggregationOf(value: unknown): Aggregation | undefined {
  return AGGREGATIONS.find((one) => one === value);
}

/** Whether a stored window shows the present. */
export function isRealtime(stored: Json): boolean {
  return stored["selectedTab"] === undefined ? stored["history"] === undefined || stored["realtime"] !== undefined : stored["selectedTab"] === 0;
}

/** Reads a stored time window; the last hour in realtime if there is none. */
export function readTimeWindow(value: unknown): TimeWindow {
  const stored = object(value);
  const realtime = isRealtime(stored);
  const part = object(stored[realtime ? "realtime" : "history"]);
  const kind = number(part[realtime ? "realtimeType" : "historyType"]) ?? 0;
  const fixed = object(part["fixedTimewindow"]);
  const isFixed = !realtime && kind === 1;
  const isQuick = realtime ? kind === 1 : kind === 2;
  const [from, to] = [knownMoment(number(fixed["startTimeMs"]) ?? 0), knownMoment(number(fixed["endTimeMs"]) ?? 0)];
  const length = isFixed ? Math.max(1, to - from) : Math.min(MOST_LENGTH, Math.max(1, number(part["timewindowMs"]) ?? HOUR));
  const aggregation = object(stored["aggregation"]);
  const zone = text(stored["timezone"]);
  return {
    realtime,
    length,
    end: isFixed ? to : undefined,
    quick: isQuick ? (text(part["quickInterval"]) ?? "CURRENT_DAY") : undefined,
    all: !realtime && kind === 3,
    aggregation: aggregationOf(aggregation["type"]) ?? "AVG",
    interval: groupingOf(part["interval"]) ?? intervalFor(length),
    limit: Math.min(MOST_POINTS, Math.max(1, number(aggregation["limit"]) ?? LIMIT)),
    // One that the browser doesn't know can't be shown.
    zone: zone !== undefined && isZone(zone) ? zone : undefined,
  };
}

/** Writes a time window as it is stored, beside what is stored of its rules. */
export function writeTimeWindow(window: TimeWindow, stored: Json = {}): Json {
  const { realtime, length, end, quick, all, aggregation, interval, limit, zone } = window;
  const name = realtime ? "realtime" : "history";
  const kind = all ? 3 : quick !== undefined ? (realtime ? 1 : 2) : end !== undefined ? 1 : 0;
  const part: Json = {
    ...object(stored[name]),
    [`${name}Type`]: kind,
    interval,
    ...(quick === undefined ? {} : { quickInterval: quick }),
    ...(end === undefined ? { timewindowMs: length } : { fixedTimewindow: { startTimeMs: end - length, endTimeMs: end } }),
  };
  const timezone = zone === undefined && !("timezone" in stored) ? {} : { timezone: zone ?? null };
  return { ...stored, selectedTab: realtime ? 0 : 1, [name]: part, aggregation: { ...object(stored["aggregation"]), type: aggregation, limit }, ...timezone };
}

/** Returns first and last moment of a window, seen from `now`. */
export function boundsOf(window: TimeWindow, now: number): [number, number] {
  if (window.all) {
    return [0, now];
  }
  if (window.quick !== undefined) {
    return quickInterval(window.quick, now, window.zone);
  }
  const end = window.end ?? now;
  return [end - window.length, end];
}

/** Returns a fixed window of the past between two moments; points are grouped as finely as its length permits. */
export function fixedWindow(window: TimeWindow, from: number, to: number): TimeWindow {
  const length = Math.max(1_000, Math.round(to - from));
  return { ...window, realtime: false, all: false, quick: undefined, end: Math.round(from) + length, length, interval: intervalFor(length) };
}

/** How a window of points is grouped; not at all where each point is wanted. */
export function groupingIn(window: TimeWindow, start: number, end: number): Grouping | undefined {
  return window.aggregation === "NONE" || window.all ? undefined : withinBounds(window.interval, end - start);
}

/** What a widget wants of the points of its window besides the keys. */
export interface PointsWish {
  /** The last point before the window, too. */
  previous?: boolean;
  /** Each point as it is. */
  raw?: boolean;
}

/**
 * Returns the part of an ENTITY_DATA command that asks for the points of keys in a window. Live windows begin and end where groups do, so that
 * the group that is going on has its place from the start.
 */
export function pointsCommand(asked: TimeWindow, keys: string[], now: number, wish: PointsWish = {}): Record<string, unknown> {
  const window: TimeWindow = wish.raw === true ? { ...asked, aggregation: "NONE" } : asked;
  const [start, end] = boundsOf(window, now);
  const grouping = groupingIn(window, start, end);
  const previous = wish.previous === true ? { fetchLatestPreviousPoint: true } : {};
  const zone = window.zone ?? Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (grouping === undefined) {
    const common = { keys, startTs: start, interval: 0, limit: window.all ? MOST_POINTS : window.limit, agg: "NONE", ...previous };
    return window.realtime ? { tsCmd: { ...common, timeWindow: end - start } } : { historyCmd: { ...common, endTs: end } };
  }
  const kind = typeof grouping === "number" ? { intervalType: "MILLISECONDS", interval: grouping } : { intervalType: grouping, interval: lengthOf(grouping) };
  const common = { keys, ...kind, timeZoneId: zone, limit: MOST_POINTS, agg: window.aggregation, ...previous };
  if (!window.realtime) {
    return { historyCmd: { ...common, startTs: start, endTs: end } };
  }
  const [first] = groupAt(grouping, start, window.zone);
  const [open, last] = groupAt(grouping, now, window.zone);
  const tsCmd = { ...common, startTs: first, timeWindow: last - first };
  // An average goes on from how many values it is made of, which its points don't tell.
  return window.aggregation === "AVG" ? { tsCmd, historyCmd: { ...common, startTs: open, endTs: last, agg: "COUNT" } } : { tsCmd };
}
