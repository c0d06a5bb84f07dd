// The stretch of time that a dashboard shows.

import { number, object, text } from "./model";

export interface TimeWindow {
  realtime: boolean;
  /** Length, milliseconds; of fixed windows the distance of their ends. */
  length: number;
  /** Last moment of a fixed window. */
  end: number | undefined;
  /** Calendar interval, such as `CURRENT_DAY`. */
  quick: string | undefined;
  aggregation: string;
  interval: number;
  limit: number;
}

const HOUR = 3_600_000;
const LIMIT = 25_000;

/** Returns first and last moment of a calendar interval that contains or precedes `now`, in the browser's time zone. */
export function quickInterval(name: string, now: number): [number, number] {
  const match = /^(CURRENT|PREVIOUS)_(HOUR|DAY|WEEK_ISO|WEEK|MONTH|QUARTER|HALF_YEAR|YEAR)(_SO_FAR)?$/.exec(name);
  const day = { YESTERDAY: 1, DAY_BEFORE_YESTERDAY: 2, THIS_DAY_LAST_WEEK: 7 }[name];
  const unit = match?.[2] ?? (day === undefined ? "HOUR" : "DAY");
  const back = day ?? (match?.[1] === "PREVIOUS" ? 1 : 0);
  const at = new Date(now);
  const [year, month, date, hour] = [at.getFullYear(), at.getMonth(), at.getDate(), at.getHours()];
  const weekday = unit === "WEEK" ? at.getDay() : (at.getDay() + 6) % 7;
  const starts: Record<string, (n: number) => Date> = {
    HOUR: (n) => new Date(year, month, date, hour + n),
    DAY: (n) => new Date(year, month, date + n),
    WEEK: (n) => new Date(year, month, date - weekday + 7 * n),
    WEEK_ISO: (n) => new Date(year, month, date - weekday + 7 * n),
    MONTH: (n) => new Date(year, month + n),
    QUARTER: (n) => new Date(year, month - (month % 3) + 3 * n),
    HALF_YEAR: (n) => new Date(year, month - (month % 6) + 6 * n),
    YEAR: (n) => new Date(year + n, 0),
  };
  const start = (n: number): number => (starts[unit]?.(n) ?? at).getTime();
  return [start(-back), match?.[3] === undefined ? start(1 - back) : now];
}

/** Returns the width of an interval so that a window has about two hundred, whole seconds. */
export function intervalFor(length: number): number {
  return Math.max(1_000, Math.ceil(length / 200 / 1_000) * 1_000);
}

/** Reads a stored time window; the last hour in realtime if there is none. */
export function readTimeWindow(value: unknown): TimeWindow {
  const stored = object(value);
  const realtime = stored["selectedTab"] === undefined ? stored["history"] === undefined || stored["realtime"] !== undefined : stored["selectedTab"] === 0;
  const part = object(stored[realtime ? "realtime" : "history"]);
  const kind = number(part[realtime ? "realtimeType" : "historyType"]) ?? 0;
  const fixed = object(part["fixedTimewindow"]);
  const isFixed = !realtime && kind === 1;
  const isQuick = realtime ? kind === 1 : kind === 2;
  const [from, to] = [number(fixed["startTimeMs"]) ?? 0, number(fixed["endTimeMs"]) ?? 0];
  const length = isFixed ? Math.max(1, to - from) : (number(part["timewindowMs"]) ?? HOUR);
  const aggregation = object(stored["aggregation"]);
  return {
    realtime,
    length,
    end: isFixed ? to : undefined,
    quick: isQuick ? text(part["quickInterval"]) : undefined,
    aggregation: text(aggregation["type"]) ?? "AVG",
    interval: number(part["interval"]) ?? intervalFor(length),
    limit: Math.min(50_000, number(aggregation["limit"]) ?? LIMIT),
  };
}

/** Returns first and last moment of a window, seen from `now`. */
export function boundsOf(window: TimeWindow, now: number): [number, number] {
  if (window.quick !== undefined) {
    return quickInterval(window.quick, now);
  }
  const end = window.end ?? now;
  return [end - window.length, end];
}

/** Returns the part of an ENTITY_DATA command that asks for the points of keys in a window. */
export function pointsCommand(window: TimeWindow, keys: string[], now: number): Record<string, unknown> {
  const [start, end] = boundsOf(window, now);
  const common = { keys, interval: Math.max(window.interval, Math.ceil((end - start) / 500)), limit: window.limit, agg: window.aggregation };
  return window.realtime
    ? { tsCmd: { ...common, startTs: start, timeWindow: end - start } }
    : { historyCmd: { ...common, startTs: start, endTs: end } };
}
