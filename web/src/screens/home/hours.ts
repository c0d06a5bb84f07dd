// What devices did in the last day, by hours, as the usage entity of a tenant or of the whole installation counts it.

import { list, number, object } from "@/dashboard/json";
import { live } from "@/live/socket";

const HOUR_MS = 3_600_000;
export const HOURS = 24;

/** What is counted, by the names of the hourly series. */
export const COUNTED = [
  { key: "transportMsgCountHourly", label: "Messages of devices", adds: true },
  { key: "activeDevicesCountHourly", label: "Active devices", adds: false },
] as const;

export interface Hour {
  ts: number;
  value: number;
}

interface Stored {
  ts: number;
  value: unknown;
}

/** Returns the hours up to the present one; one of which nothing is stored had nothing. */
export function hoursOf(stored: readonly Stored[], now: number): Hour[] {
  const known = new Map(stored.map(({ ts, value }) => [Math.floor(ts / HOUR_MS), Number(value)]));
  const last = Math.floor(now / HOUR_MS);
  return Array.from({ length: HOURS }, (_, n) => last - HOURS + 1 + n).map((hour) => ({ ts: hour * HOUR_MS, value: known.get(hour) ?? 0 }));
}

/** Returns the hours of all that is counted, as an answer has them; undefined for one that has none. */
export function readAnswer(update: unknown, now: number): Record<string, Hour[]> | undefined {
  const { data, errorCode, errorMsg } = object(update);
  if (number(errorCode) !== undefined && errorCode !== 0) {
    throw new Error(String(errorMsg));
  }
  if (!Array.isArray(object(data)["data"])) {
    return undefined;
  }
  const series = object(object(list(object(data)["data"])[0])["timeseries"]);
  return Object.fromEntries(COUNTED.map(({ key }) => [key, hoursOf(list(series[key]) as Stored[], now)]));
}

/** Asks for the hours of all that is counted, of whatever the role may see: the system administrator may read what all have together by a query alone. */
export function askActivity(signal: AbortSignal): Promise<Record<string, Hour[]>> {
  const now = Date.now();
  const query = { entityFilter: { type: "apiUsageState" }, pageLink: { page: 0, pageSize: 1 }, entityFields: [], latestValues: [] };
  const historyCmd = { keys: COUNTED.map(({ key }) => key), startTs: now - HOURS * HOUR_MS, endTs: now, interval: 0, limit: HOURS + 1, agg: "NONE" };
  return new Promise((resolve, reject) => {
    const end = live.subscribe({ type: "ENTITY_DATA", query, historyCmd }, (update) => {
      try {
        const hours = readAnswer(update, now);
        if (hours !== undefined) {
          end();
          resolve(hours);
        }
      } catch (error) {
        end();
        reject(error as Error);
      }
    });
    signal.addEventListener("abort", end);
  });
}
