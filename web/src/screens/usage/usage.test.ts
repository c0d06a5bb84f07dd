import { expect, test } from "vitest";
import { list, object } from "@/dashboard/json";
import { readDashboard } from "@/dashboard/model";
import { CHARTS, usageDashboard } from "./course";

const keys = (step: "hours" | "days" | "months"): string[] => [...readDashboard(usageDashboard(step, (text) => text, {})).widgets.values()].flatMap(({ datasources }) => datasources.flatMap(({ dataKeys }) => dataKeys.map(({ name }) => name)));

test("hours and days are made of hourly series, months of monthly ones", () => {
  expect(keys("hours")).toContain("transportMsgCountHourly");
  expect(keys("days")).toEqual(keys("hours"));
  expect(keys("months")).toContain("transportMsgCount");
  expect(keys("months").some((key) => key.endsWith("Hourly"))).toBe(false);
});

test("days add their hours, but for what is measured; months show the limits that there are", () => {
  const days = readDashboard(usageDashboard("days", (text) => text, {}));
  expect(days.timeWindow).toMatchObject({ aggregation: { type: "SUM" }, history: { interval: 86_400_000 } });
  expect(days.widgets.get("Active devices")?.timeWindow).toMatchObject({ aggregation: { type: "MAX" } });
  const thresholds = (step: "hours" | "months"): unknown[] => list(object(object(object(object(usageDashboard(step, (text) => text, { maxTransportMessages: 500, maxAlarms: 0 })["widgets"])["Messages of devices"])["config"])["settings"])["thresholds"]);
  expect(thresholds("months")).toMatchObject([{ value: 500 }]);
  expect(thresholds("hours")).toEqual([]);
  expect(CHARTS.map(({ title }) => title)).toEqual([...new Set(CHARTS.map(({ title }) => title))]);
});
