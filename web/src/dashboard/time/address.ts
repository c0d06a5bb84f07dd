// A chosen window in the address bar, so that it can be read, changed by hand and passed on: `time=2h`, `time=CURRENT_DAY`,
// `time=2026-11-25T10:00:00.000Z/2026-11-25T12:00:00.000Z`, `time=all`, beside `agg=AVG`, `every=60000`, `limit=500` and `zone=Europe/Berlin`. A window
// of the past that is not a fixed one says so by `live=false`.

import { aggregationOf, intervalFor, MOST_LENGTH, MOST_POINTS, type TimeWindow } from "../timeWindow";
import { number } from "../json";
import { QUICK_INTERVALS, isCurrent } from "./calendar";
import { CALENDAR_GROUPS } from "./grouping";
import { isZone } from "./zone";

/** Parameters of the address that say what time is shown. */
export const TIME_PARAMETERS = ["time", "live", "agg", "every", "limit", "zone"] as const;

const UNITS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** Writes a length of time in its largest whole unit. */
function writeLength(ms: number): string {
  const unit = (["d", "h", "m", "s"] as const).find((one) => ms % UNITS[one] === 0) ?? "ms";
  return `${ms / UNITS[unit]}${unit}`;
}

function readLength(written: string): number | undefined {
  const match = /^(\d+)(ms|s|m|h|d)$/.exec(written);
  const unit = (["ms", "s", "m", "h", "d"] as const).find((one) => one === match?.[2]);
  return unit === undefined ? undefined : Math.min(MOST_LENGTH, Number(match?.[1]) * UNITS[unit]);
}

/** Writes what differs from the stored window; nothing for the stored one. */
export function writeAddress(window: TimeWindow, stored: TimeWindow): URLSearchParams {
  const written = new URLSearchParams();
  if (JSON.stringify(window) === JSON.stringify(stored)) {
    return written;
  }
  const { realtime, length, end, quick, all } = window;
  written.set("time", all ? "all" : (quick ?? (end === undefined ? writeLength(length) : `${new Date(end - length).toISOString()}/${new Date(end).toISOString()}`)));
  if (!realtime && !all && end === undefined) {
    written.set("live", "false");
  }
  if (window.aggregation !== stored.aggregation) {
    written.set("agg", window.aggregation);
  }
  written.set("every", typeof window.interval === "number" ? writeLength(window.interval) : window.interval);
  if (window.limit !== stored.limit) {
    written.set("limit", String(window.limit));
  }
  if (window.zone !== undefined && window.zone !== stored.zone) {
    written.set("zone", window.zone);
  }
  return written;
}

function readTime(time: string, live: boolean): Pick<TimeWindow, "realtime" | "length" | "end" | "quick" | "all"> | undefined {
  const none = { end: undefined, quick: undefined, all: false };
  if (time === "all") {
    return { ...none, realtime: false, length: UNITS.h, all: true };
  }
  if (QUICK_INTERVALS.some(([name]) => name === time)) {
    return { ...none, realtime: live && isCurrent(time), length: UNITS.d, quick: time };
  }
  const [from = NaN, to = NaN] = time.split("/").map((moment) => Date.parse(moment));
  if (to > from) {
    return { ...none, realtime: false, length: to - from, end: to };
  }
  const length = readLength(time);
  return length === undefined || length <= 0 ? undefined : { ...none, realtime: live, length };
}

/** Reads the window of an address; the stored one where it says nothing, or nothing that can be understood. */
export function readAddress(search: URLSearchParams, stored: TimeWindow): TimeWindow {
  const time = readTime(search.get("time") ?? "", search.get("live") !== "false");
  const base: TimeWindow = time === undefined ? stored : { ...stored, ...time, interval: intervalFor(time.length) };
  const every = search.get("every") ?? "";
  const zone = search.get("zone");
  const limit = number(search.get("limit"));
  return {
    ...base,
    aggregation: aggregationOf(search.get("agg")) ?? base.aggregation,
    interval: CALENDAR_GROUPS.find((one) => one === every) ?? readLength(every) ?? base.interval,
    limit: limit === undefined ? base.limit : Math.min(MOST_POINTS, Math.max(1, Math.floor(limit))),
    zone: zone !== null && isZone(zone) ? zone : base.zone,
  };
}
