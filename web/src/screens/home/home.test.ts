import { expect, test } from "vitest";
import { hoursOf, readAnswer } from "./hours";
import { pathOf } from "./PercentChart";

test("a course fills its box from the first to the last moment, and stays in it", () => {
  expect(pathOf([{ ts: 0, value: 0 }, { ts: 5, value: 50 }, { ts: 10, value: 150 }], 100, 10)).toBe("M0.0,10.0L50.0,5.0L100.0,0.0");
  expect(pathOf([{ ts: 3, value: 100 }], 100, 10)).toBe("M0.0,0.0");
});

test("a course of another size has its own top", () => {
  expect(pathOf([{ ts: 0, value: 0 }, { ts: 1, value: 20 }], 10, 10, 20)).toBe("M0.0,10.0L10.0,0.0");
});

test("a day has 24 hours up to the present one, also where nothing was counted", () => {
  const hour = 3_600_000;
  const hours = hoursOf([{ ts: 30 * hour, value: "7" }, { ts: 28 * hour, value: 2 }, { ts: hour, value: 9 }], 30.5 * hour);
  expect(hours).toHaveLength(24);
  expect(hours[0]).toEqual({ ts: 7 * hour, value: 0 });
  expect(hours.slice(-3).map(({ value }) => value)).toEqual([2, 0, 7]);
});

test("an answer has what was counted, a refusal is told, and anything else is waited over", () => {
  const series = { transportMsgCountHourly: [{ ts: 3_600_000, value: "40" }], activeDevicesCountHourly: [] };
  const hours = readAnswer({ cmdId: 1, data: { data: [{ timeseries: series }] } }, 3_600_000);
  expect(hours?.["transportMsgCountHourly"]?.at(-1)).toEqual({ ts: 3_600_000, value: 40 });
  expect(hours?.["activeDevicesCountHourly"]).toHaveLength(24);
  expect(readAnswer({ cmdId: 1, update: [] }, 0)).toBeUndefined();
  expect(() => readAnswer({ cmdId: 1, errorCode: 3, errorMsg: "No" }, 0)).toThrow("No");
});
