import { expect, test } from "vitest";
import { onCircle, ringPath, slicesOf, ticksOf } from "./shapes";

test("angles begin at the top and go clockwise", () => {
  expect(onCircle(0, 0, 10, 0).map(Math.round)).toEqual([0, -10]);
  expect(onCircle(0, 0, 10, 90).map(Math.round)).toEqual([10, 0]);
});

test("slices fill the circle by their share, and nothing is drawn of nothing", () => {
  expect(slicesOf([1, 3, -5])).toEqual([[0, 90], [90, 360], [360, 360]]);
  expect(slicesOf([0, 0])).toEqual([[0, 0], [0, 0]]);
  expect(ringPath(0, 0, 10, 0, 0, 360)).not.toContain("NaN");
});

test("ticks are round numbers within the scale", () => {
  expect(ticksOf(0, 100, 10)).toEqual([0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100]);
  expect(ticksOf(-3, 3, 3)).toEqual([-2, 0, 2]);
});
