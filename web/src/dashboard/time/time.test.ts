import { expect, test } from "vitest";
import { readDashboard } from "../model";
import { SourceData } from "../sourceData";
import { boundsOf, fixedWindow, pointsCommand, readTimeWindow, writeTimeWindow } from "../timeWindow";
import { readAddress, writeAddress } from "./address";
import { intervalBefore, moved, quickInterval } from "./calendar";
import { setClock, serverNow } from "./clock";
import { zoomedOut } from "./control";
import { fold, type Folding } from "./folding";
import { groupAt, groupingBounds, groupingsOf, intervalFor } from "./grouping";
import { rulesOf } from "./rules";
import { momentText, windowText } from "./words";
import { fieldMoment, fieldText, momentOf } from "./zone";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

test("days begin at the midnight of a zone, also when clocks change", () => {
  const now = Date.UTC(2026, 2, 29, 12);
  const [start, end] = quickInterval("CURRENT_DAY", now, "Europe/Berlin");
  expect(new Date(start).toISOString()).toBe("2026-03-28T23:00:00.000Z");
  expect(end - start).toBe(23 * HOUR);
  expect(quickInterval("CURRENT_WEEK", now, "UTC")[0]).toBe(Date.UTC(2026, 2, 29));
  expect(quickInterval("CURRENT_WEEK_ISO", now, "UTC")[0]).toBe(Date.UTC(2026, 2, 23));
  expect(quickInterval("PREVIOUS_QUARTER", now, "UTC")).toEqual([Date.UTC(2025, 9, 1), Date.UTC(2026, 0, 1)]);
  expect(quickInterval("CURRENT_MONTH_SO_FAR", now, "UTC")).toEqual([Date.UTC(2026, 2, 1), now]);
  expect(intervalBefore("CURRENT_MONTH", now, "UTC")).toEqual([Date.UTC(2026, 1, 1), Date.UTC(2026, 2, 1)]);
  expect(fieldText(momentOf("Asia/Tokyo", 2026, 0, 2, 3, 4, 5), "Asia/Tokyo")).toBe("2026-01-02T03:04:05");
  expect(fieldMoment("2026-01-02T03:04", "UTC")).toBe(Date.UTC(2026, 0, 2, 3, 4));
});

test("what a calendar lacks is what comes nearest", () => {
  const iso = (ts: number): string => new Date(ts).toISOString();
  // Midnights that the clocks leave out, west and east of Greenwich.
  expect(iso(momentOf("America/Sao_Paulo", 2018, 10, 4))).toBe("2018-11-04T03:00:00.000Z");
  expect(iso(momentOf("Asia/Beirut", 2021, 2, 28))).toBe("2021-03-27T22:00:00.000Z");
  expect(iso(moved(Date.UTC(2026, 2, 31, 10), "UTC", -1, 0))).toBe("2026-02-28T10:00:00.000Z");
  expect(iso(moved(Date.UTC(2024, 1, 29), "UTC", -12, 0))).toBe("2023-02-28T00:00:00.000Z");
  // A day of the calendar has 25 hours where clocks are put back.
  expect(moved(Date.UTC(2026, 9, 24, 22), "Europe/Berlin", 0, 1) - Date.UTC(2026, 9, 24, 22)).toBe(25 * HOUR);
  expect(intervalBefore("CURRENT_MONTH_SO_FAR", Date.UTC(2026, 2, 31, 10), "UTC")).toEqual([Date.UTC(2026, 1, 1), Date.UTC(2026, 2, 1)]);
});

test("windows without sense are shown as far as clocks reach", () => {
  const fixed = readTimeWindow({ selectedTab: 1, history: { historyType: 1, fixedTimewindow: { startTimeMs: -1e17, endTimeMs: 1e16 } }, timezone: "Mars/Olympus" });
  expect(fixed.zone).toBeUndefined();
  expect(windowText(fixed)).toContain("9999");
  const long = readTimeWindow({ realtime: { timewindowMs: 1e17 }, timezone: "Europe/Berlin" });
  expect(() => pointsCommand(long, ["t"], Date.UTC(2026, 0, 1))).not.toThrow();
  expect(() => fieldText(1e20, "Europe/Berlin")).not.toThrow();
  expect(momentText(0, "Mars/Olympus")).toContain("70");
});

test("a window has at most five hundred groups, and about two hundred unless told", () => {
  expect(groupingBounds(HOUR)).toEqual([8_000, HOUR]);
  expect(intervalFor(HOUR)).toBe(15_000);
  expect(intervalFor(7 * DAY)).toBe(HOUR);
  expect(groupingsOf(HOUR)[0]).toBe(10_000);
  expect(groupingsOf(365 * DAY)).toContain("MONTH");
  expect(groupAt("MONTH", Date.UTC(2026, 10, 25), "UTC")).toEqual([Date.UTC(2026, 10, 1), Date.UTC(2026, 11, 1)]);
  expect(groupAt(DAY, Date.UTC(2026, 10, 25, 2), "Asia/Tokyo")[0]).toBe(Date.UTC(2026, 10, 24, 15));
});

test("a live window is asked for in whole groups, an average with the count of the one that goes on", () => {
  const window = readTimeWindow({ realtime: { timewindowMs: HOUR, interval: MINUTE }, aggregation: { type: "AVG" }, timezone: "UTC" });
  const now = 10 * HOUR + 90_500;
  const command = pointsCommand(window, ["t"], now);
  expect(command["tsCmd"]).toMatchObject({ startTs: 9 * HOUR + MINUTE, timeWindow: HOUR + MINUTE, interval: MINUTE, agg: "AVG", timeZoneId: "UTC" });
  expect(command["historyCmd"]).toMatchObject({ startTs: 10 * HOUR + MINUTE, endTs: 10 * HOUR + 2 * MINUTE, agg: "COUNT" });
  expect(pointsCommand({ ...window, aggregation: "NONE" }, ["t"], now, { previous: true })["tsCmd"]).toMatchObject({ startTs: 9 * HOUR + 90_500, agg: "NONE", fetchLatestPreviousPoint: true });
  expect(pointsCommand({ ...window, realtime: false, all: true }, ["t"], now)["historyCmd"]).toMatchObject({ startTs: 0, endTs: now, agg: "NONE" });
});

test("new values join the group that they belong to", () => {
  const folding = (kind: Folding["kind"], counts: [number, number][] = []): Folding => ({ kind, grouping: 10, zone: "UTC", counts: new Map(counts) });
  const points = [{ ts: 5, value: "4" }, { ts: 15, value: "10" }];
  expect(fold(points, { ts: 17, value: "2" }, folding("AVG", [[10, 3]])).at(-1)).toEqual({ ts: 15, value: "8" });
  expect(fold(points, { ts: 17, value: "2" }, folding("MIN")).at(-1)?.value).toBe("2");
  expect(fold(points, { ts: 17, value: "2" }, folding("SUM")).at(-1)?.value).toBe("12");
  expect(fold(points, { ts: 17, value: "x" }, folding("COUNT", [[10, 10]])).at(-1)?.value).toBe("11");
  expect(fold(points, { ts: 21, value: "7" }, folding("MAX")).at(-1)).toEqual({ ts: 25, value: "7" });
});

test("averages of a live window stay exact while values come", async () => {
  const source = readDashboard({ widgets: { w: { config: { datasources: [{ dataKeys: [{ name: "t", type: "timeseries" }] }] } } } }).widgets.get("w")?.datasources[0];
  if (source === undefined) {
    throw new Error("no datasource");
  }
  const window = readTimeWindow({ realtime: { timewindowMs: HOUR, interval: MINUTE }, aggregation: { type: "AVG" }, timezone: "UTC" });
  const data = new SourceData({ source, filter: {}, keyFilters: [], window });
  const now = 10 * HOUR + 30_000;
  const entityId = { entityType: "DEVICE", id: "7" };
  const changed = new Promise<void>((resolve) => data.watch(resolve));
  data.take({ data: { data: [{ entityId, timeseries: { t: [{ ts: now, value: "3" }] } }] } as never }, now);
  data.take({ update: [{ entityId, timeseries: { t: [{ ts: 9.5 * HOUR, value: "1" }, { ts: 10 * HOUR + 30_000, value: "20" }] } }] }, now);
  data.take({ update: [{ entityId, timeseries: { t: [{ ts: 10 * HOUR + 40_000, value: "40" }] } }] }, now + 10_000);
  await changed;
  expect(data.entities()[0]?.points.get("t")).toEqual([{ ts: 9.5 * HOUR, value: "1" }, { ts: 10 * HOUR + 30_000, value: "25" }]);
});

test("windows are stored as they were read, and flags beside them stay", () => {
  const stored = { selectedTab: 1, hideAggregation: true, history: { historyType: 2, quickInterval: "PREVIOUS_MONTH", interval: "WEEK_ISO", hideFixedInterval: true }, aggregation: { type: "SUM", limit: 10 }, timezone: "UTC" };
  const window = readTimeWindow(stored);
  expect(window).toMatchObject({ realtime: false, quick: "PREVIOUS_MONTH", interval: "WEEK_ISO", aggregation: "SUM", zone: "UTC" });
  expect(writeTimeWindow(window, stored)).toMatchObject(stored);
  expect(readTimeWindow(writeTimeWindow({ ...window, zone: undefined }, stored)).zone).toBeUndefined();
  const rules = rulesOf({ ...stored, allowedAggTypes: ["AVG", "x"], realtime: { hideInterval: true, advancedParams: { allowedLastIntervals: [MINUTE] } } });
  expect(rules).toMatchObject({ aggregation: false, aggregations: ["AVG"], realtime: { offered: false, lengths: [[MINUTE, "last minute"]] }, history: { fixed: false } });
  expect(rules.realtime.quickIntervals.every(([name]) => name.startsWith("CURRENT_"))).toBe(true);
});

test("the address says which window is shown, and nothing of a stored one", () => {
  const stored = readTimeWindow({});
  expect(writeAddress(stored, stored).toString()).toBe("");
  for (const window of [fixedWindow(stored, 1_000_000, 5_000_000), { ...stored, length: 2 * HOUR, aggregation: "NONE" as const }, { ...stored, quick: "CURRENT_DAY", length: DAY, interval: "WEEK" as const }, { ...stored, realtime: false, quick: "YESTERDAY", length: DAY, zone: "Asia/Tokyo" }]) {
    const read = readAddress(writeAddress(window, stored), stored);
    expect(boundsOf(read, 9 * DAY)).toEqual(boundsOf(window, 9 * DAY));
    expect(read).toMatchObject({ realtime: window.realtime, aggregation: window.aggregation, interval: window.interval, zone: window.zone });
  }
  expect(readAddress(new URLSearchParams("time=<script>&agg=x&every=-1&limit=NaN&zone=Nowhere"), stored)).toEqual(stored);
  expect(boundsOf(zoomedOut(fixedWindow(stored, 10 * HOUR, 12 * HOUR)), 0)).toEqual([9 * HOUR, 13 * HOUR]);
});

test("a wrong clock of the browser is corrected, the wait for an answer is not", () => {
  setClock(Date.now() + HOUR, Date.now() - 10, Date.now() + 10);
  expect(Math.abs(serverNow() - Date.now() - HOUR)).toBeLessThan(1_000);
  setClock(Date.now() + 1_500, Date.now() - 2_000, Date.now() + 2_000);
  expect(serverNow() - Date.now()).toBeLessThan(5);
});
