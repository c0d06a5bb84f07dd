import { expect, test } from "vitest";
import { colorOf } from "./color";
import { aggregate, scaleOf, shareOf } from "./values";

test("scales are read distrustfully, and values stay on them", () => {
  expect(scaleOf({ minValue: "10", maxValue: 20 })).toEqual([10, 20]);
  expect(scaleOf({ minValue: 5, maxValue: 5 })).toEqual([0, 100]);
  expect([15, 99, NaN].map((value) => shareOf(value, [10, 20]))).toEqual([0.5, 1, 0]);
});

test("points of a window come together as one number", () => {
  const points = ["1", "x", "5", "3"].map((value, ts) => ({ ts, value }));
  expect(["AVG", "MIN", "MAX", "SUM", "COUNT", "NONE"].map((kind) => aggregate(points, kind))).toEqual([3, 1, 5, 9, 3, 3]);
  expect(aggregate([], "MAX")).toBeUndefined();
});

test("colours come from ranges, and a style can't be ended by one", () => {
  const ranges = { type: "range", color: "#111", rangeList: [{ to: 10, color: "#222" }, { from: 10, to: 20, color: "#333" }] };
  expect([5, 10, 30].map((value) => colorOf(ranges, value, "#fff"))).toEqual(["#222", "#333", "#111"]);
  expect(colorOf({ color: "red;background:url(x)" }, 1, "#abc")).toBe("#abc");
});
