import { expect, test } from "vitest";
import { pathOf } from "./PercentChart";

test("a course fills its box from the first to the last moment, and stays in it", () => {
  expect(pathOf([{ ts: 0, value: 0 }, { ts: 5, value: 50 }, { ts: 10, value: 150 }], 100, 10)).toBe("M0.0,10.0L50.0,5.0L100.0,0.0");
  expect(pathOf([{ ts: 3, value: 100 }], 100, 10)).toBe("M0.0,0.0");
});
