import { expect, test } from "vitest";
import { ApiError } from "@/api/client";
import type { ReplayAlarm, ReplayReport } from "@/api/schema.gen";
import { alarmRows, countsOf, isCut, lanesOf, pointRows, spanOf, ticks } from "./report";
import { beginning, endedText, missing, problemOf, rangeOf, replayFields, requestOf } from "./request";

const NOW = 1_760_000_000_000;
const device = (id: string) => ({ entityType: "DEVICE", id });

function alarm(id: string, startTs: number, more: Partial<ReplayAlarm> = {}): ReplayAlarm {
  return { id: { entityType: "ALARM", id }, originator: device("d1"), originatorName: "Pump", type: "Hot", severity: "MAJOR", severities: [], startTs, endTs: startTs, raisedTs: startTs, clearedTs: null, wasActive: false, updates: 0, ...more };
}

function report(alarms: Partial<ReplayReport["difference"]["alarms"]>, touched: ReplayAlarm[] = []): ReplayReport {
  return {
    summary: { startTs: 0, endTs: 1_000, devices: 1, draft: false, droppedFollowUps: 0, durationMs: 1, failed: 0, followUps: 0, messages: 1, notChanged: {}, ruleChainId: device("c"), ruleChainName: "Root", series: 1, timers: 0 },
    stored: { attributes: {}, keys: { speed: 3, heat: 5 }, points: 8, sample: [] },
    alarms: { activeAtStart: 0, alarms: touched, cleared: 0, raised: touched.length, updated: 0 },
    nodes: [],
    difference: {
      points: { different: 0, keys: { heat: { same: 4, different: 1, onlyReplayed: 0, onlyStored: 0 }, speed: { same: 3, different: 0, onlyReplayed: 0, onlyStored: 0 }, gone: { same: 0, different: 0, onlyReplayed: 0, onlyStored: 2 } }, onlyReplayed: 0, onlyStored: 2, outside: 0, same: 7, sample: [] },
      alarms: { changed: [], different: 0, incomplete: false, onlyReplayed: 0, onlyStored: 0, replayed: [], same: 0, stored: [], ...alarms },
    },
  };
}

test("alarms of a replay are told as the same, different, only replayed and only stored, by when they began", () => {
  const [same, news, worse] = [alarm("same", 100), alarm("new", 50), alarm("worse", 300, { severity: "CRITICAL" })];
  const made = report({ same: 1, onlyReplayed: 1, replayed: [news], different: 1, changed: [{ fields: ["severity"], stored: alarm("was", 300), replayed: worse }], onlyStored: 1, stored: [alarm("missed", 200)] }, [same, news, worse]);
  const rows = alarmRows(made);
  expect(rows.map(({ verdict }) => verdict)).toEqual(["onlyReplayed", "same", "onlyStored", "different"]);
  expect(rows[3]).toMatchObject({ stored: { severity: "MAJOR" }, replayed: { severity: "CRITICAL" } });
  expect(countsOf(rows)).toEqual({ same: 1, different: 1, onlyReplayed: 1, onlyStored: 1 });
  expect(isCut(made)).toBe(false);
  expect(isCut(report({ onlyStored: 5, stored: [alarm("one", 1)] }))).toBe(true);
});

test("a lane has what was beside what would have been, with the severities in their times", () => {
  const changing = alarm("rises", 200, { clearedTs: 600, severities: [[200, "MINOR"], [400, "CRITICAL"]] });
  const rows = alarmRows(report({ replayed: [changing], onlyReplayed: 1, stored: [alarm("old", -500, { clearedTs: 100 }), alarm("other", 500, { originator: device("d2"), originatorName: "Fan" })], onlyStored: 2 }, [changing]));
  const [fan, pump] = lanesOf(rows, 0, 1_000);
  expect(pump?.replayed.map(({ from, to, severity }) => [from, to, severity])).toEqual([[0.2, 0.4, "MINOR"], [0.4, 0.6, "CRITICAL"]]);
  expect(pump?.stored.map(({ from, to }) => [from, to])).toEqual([[0, 0.1]]);
  // What was never cleared goes on to the end.
  expect(fan).toMatchObject({ name: "Fan", differs: true, replayed: [], stored: [{ from: 0.5, to: 1 }] });
  const same = alarm("same", 1);
  expect(lanesOf(alarmRows(report({ same: 1 }, [same])), 0, 10)[0]).toMatchObject({ differs: false, stored: [{ from: 0.1 }], replayed: [{ from: 0.1 }] });
  expect(lanesOf(rows, 5, 5)[0]?.stored).toEqual([]);
  // The picture is of the time that has alarms.
  const [from, to] = spanOf(alarmRows(report({ replayed: [alarm("short", 900_000, { clearedTs: 902_000 })], onlyReplayed: 1 })), 0, 1_000_000);
  expect([from, to]).toEqual([899_900, 902_100]);
  expect(spanOf(rows, 0, 1_000)).toEqual([0, 1_000]);
  expect(spanOf([], 0, 5)).toEqual([0, 5]);
  expect(ticks(0, 100, 3).map(({ ts }) => ts)).toEqual([0, 50, 100]);
});

test("points are told by key, those first that differ", () => {
  expect(pointRows(report({})).map(({ key, points }) => [key, points])).toEqual([["gone", 0], ["heat", 5], ["speed", 3]]);
});

test("a request holds what the form says, and a form says what it lacks", () => {
  const chain = { ruleChainId: { entityType: "RULE_CHAIN", id: "c" } };
  const all = beginning(NOW, chain);
  expect(missing(all, true)).toBeUndefined();
  expect(requestOf(all, { calculatedFields: [{ name: "x" }] })).toEqual({
    startTs: NOW - 86_400_000, endTs: NOW + 60_000, keys: [], alarmToleranceMs: 1_000, calculatedFields: [{ name: "x" }],
    limits: { devices: 1_000, messages: 100_000, timeMs: 30_000, alarms: 1_000 },
  });
  const profile = beginning(NOW, { which: "profile", deviceProfileId: { entityType: "DEVICE_PROFILE", id: "p" }, effort: "300000", toleranceSec: 2.5 });
  expect(requestOf(profile, {})).toMatchObject({ deviceProfileId: { id: "p" }, limits: { timeMs: 300_000, messages: 1_000_000 }, alarmToleranceMs: 2_500 });
  expect(requestOf({ ...profile, which: "devices", deviceIds: ["d"] }, {})).toMatchObject({ deviceIds: ["d"] });
  expect(requestOf({ ...profile, which: "devices", deviceIds: ["d"] }, {})).not.toHaveProperty("deviceProfileId");
  for (const [values, choosesChain] of [[{ ...all, endTs: NOW - 90_000_000 }, false], [{ ...all, startTs: 0 }, false], [{ ...all, which: "profile" }, false], [{ ...all, which: "devices" }, false], [beginning(NOW, {}), true]] as const) {
    expect(missing(values, choosesChain), JSON.stringify(values)).toBeTypeOf("string");
  }
  expect(rangeOf(1, NOW)).toEqual({ startTs: NOW - 3_600_000, endTs: NOW + 60_000 });
  expect(replayFields(["a"], false).some(({ name }) => name === "ruleChainId")).toBe(false);
});

test("what went wrong says what to do", () => {
  expect(problemOf(new ApiError(429, "2 replays are running already, try again when one has ended!"))).toContain("Try again when one of them has ended");
  expect(problemOf(new ApiError(429, "Too many requests"))).toBe("Too many requests");
  expect(problemOf(new ApiError(400, "1200 devices are more than the 1000 of limits.devices: …"))).toContain("choose a profile with fewer");
  expect(endedText("time", NOW)).toContain("longer");
  expect(endedText("memory", NOW)).toContain("limit");
});
