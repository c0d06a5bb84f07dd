import { commandsOf, reachable } from "./DeviceTabs";
import { expect, test } from "vitest";
import { deletionOf } from "./DeleteSeries";
import { relationFields, relationOf } from "./RelationsTab";
import { withValues } from "./ShowOnDashboard";
import { coursePaths } from "./storedCourse";
import { editedText, typedValue } from "./ValueTable";

const here = { entityType: "DEVICE", id: "d" };

test("a value that is changed in place keeps its type", () => {
  for (const value of [5, true, "on", "5", "", { a: [1] }, "{}"]) {
    expect(typedValue(editedText(value))).toEqual(value);
  }
});

test("a deletion names its period, and none that is empty", () => {
  expect(deletionOf({ what: "ALL" }, 9)).toEqual({ deleteAllDataForKeys: true });
  expect(deletionOf({ what: "BETWEEN", from: 1, until: 5, latest: true, rewrite: true }, 9)).toEqual({
    deleteAllDataForKeys: false, startTs: 1, endTs: 5, deleteLatest: true, rewriteLatestIfDeleted: true,
  });
  expect(deletionOf({ what: "BEFORE", until: 5, latest: false, rewrite: true }, 9)).toMatchObject({ startTs: 0, endTs: 5, deleteLatest: false, rewriteLatestIfDeleted: false });
  expect(deletionOf({ what: "AFTER", from: 5 }, 9)).toMatchObject({ startTs: 5, endTs: 9 });
  expect(() => deletionOf({ what: "BETWEEN", from: 5, until: 5 }, 9)).toThrow();
  expect(() => deletionOf({ what: "AFTER" }, 9)).toThrow();
});

test("a relation begins at the side that was chosen, and only what a role lists can be its other end", () => {
  const asset = { entityType: "ASSET", id: "a" };
  const values = { direction: "TO", type: " Feeds ", kind: "ASSET", other: { ASSET: asset, DEVICE: here } };
  expect(relationOf(here, values)).toMatchObject({ from: asset, to: here, type: "Feeds" });
  expect(relationOf(here, { ...values, direction: "FROM" })).toMatchObject({ from: here, to: asset });
  expect(() => relationOf(here, { ...values, kind: "CUSTOMER" })).toThrow();
  const offered = relationFields("CUSTOMER_USER", "c1").filter(({ type }) => type === "entity");
  expect(offered.map(({ label }) => label)).not.toContain("Customer");
  expect(offered[0]?.list).toBe("/api/customer/c1/deviceInfos");
});

test("values are shown by a widget with an alias of their entity, beside what the dashboard has", () => {
  const once = withValues(undefined, "system.time_series_chart", { id: here, name: "Pump" }, "timeseries", ["a", "b"]);
  const twice = withValues(once, "system.cards.value_card", { id: here, name: "Pump" }, "attribute", ["c"]);
  expect(Object.keys(twice["widgets"] as object)).toHaveLength(2);
  expect(Object.values(twice["entityAliases"] as Record<string, { alias: string }>).map(({ alias }) => alias)).toEqual(["Pump"]);
  expect(JSON.stringify(twice)).toContain('"name":"c","type":"attribute"');
});

test("commands for the host of this page go to its port, others stay", () => {
  const site = { origin: "http://10.0.0.7:9090", hostname: "10.0.0.7", protocol: "http:" };
  expect(reachable('curl "http://10.0.0.7:8080/api/v1/t/telemetry"', site)).toBe('curl "http://10.0.0.7:9090/api/v1/t/telemetry"');
  expect(reachable('curl "http://iot.example:8080/api/v1/t/telemetry"', site)).toBe('curl "http://iot.example:8080/api/v1/t/telemetry"');
  expect(commandsOf({ mqtt: { mqtts: ["curl a", "mosquitto_pub b"], docker: { mqtt: "docker c" } } })).toEqual([
    { label: "MQTTS", command: "curl a\nmosquitto_pub b" },
    { label: "MQTT (Docker)", command: "docker c" },
  ]);
});

test("the stored course is asked for of twenty keys at once, whatever their names hold", () => {
  const paths = coursePaths(here, Array.from({ length: 41 }, (_, n) => `a,${n}`), 700_000_000);
  expect(paths.map((path) => new URLSearchParams(path.split("?")[1]).getAll("key").length)).toEqual([20, 20, 1]);
  expect(paths[2]).toBe("/api/plugins/telemetry/DEVICE/d/values/timeseries?key=a%2C40&startTs=95200000&endTs=700000000&limit=60");
  expect(coursePaths(here, [], 0)).toEqual([]);
});
