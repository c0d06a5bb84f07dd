import { expect, test } from "vitest";
import { merged } from "./MarkupCard";
import { conditionOf, queryOf } from "./templates";

test("conditions of two plain values are decided, and all others left alone", () => {
  expect(conditionOf("0 === 0")).toBe(true);
  expect(conditionOf("12 !== 0")).toBe(true);
  expect(conditionOf("3 <= 2")).toBe(false);
  expect(conditionOf("3 >= 3")).toBe(true);
  expect(conditionOf("'on' == 'off'")).toBe(false);
  expect(conditionOf("false")).toBe(false);
  expect(conditionOf("ctx.some.thing")).toBeUndefined();
  expect(conditionOf("ctx.value === 1")).toBeUndefined();
  expect(conditionOf("")).toBeUndefined();
});

test("parameters of links are those of the screens here", () => {
  expect(queryOf("{active: false}")).toBe("?active=false");
  expect(queryOf("{severityList: ['CRITICAL', 'MAJOR'], page: 2}")).toBe("?severity=CRITICAL&severity=MAJOR&page=2");
  expect(queryOf("ctx.params()")).toBe("");
});

test("values of several sources fill one text", () => {
  expect(merged([{ active: 1, name: "A" }, { active: 9, total: 2, name: "B" }, { critical: undefined }])).toEqual({ active: 1, total: 2, name: "A" });
});
