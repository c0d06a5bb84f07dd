import { expect, test } from "vitest";
import { valueAt, type FormValues } from "@/ui/form/values";
import { conditionOf } from "./conditions";

const holds = (code: string, values: FormValues): boolean | undefined => conditionOf(code)?.((path) => valueAt(values, path));

test("comparisons, and what joins them, are read", () => {
  expect(holds("model.on === true", { on: true })).toBe(true);
  expect(holds("return model.on === true;", {})).toBe(false);
  expect(holds("model.kind !== 'line' && model.width > 2", { kind: "bar", width: 3 })).toBe(true);
  expect(holds("model.kind !== 'line' && model.width > 2", { kind: "bar", width: 2 })).toBe(false);
  expect(holds("(model.a.b == '1' || !model.c)", { a: { b: 1 }, c: true })).toBe(true);
  expect(holds("!(model.a.b == 1) || model['c d'] === \"x || y\"", { a: { b: 1 }, "c d": "x || y" })).toBe(true);
  expect(holds("!!model.a && (model.b || model.c)", { a: 1, c: 0 })).toBe(false);
});

test("what can't be read is no condition, and nothing of it runs", () => {
  expect([conditionOf("model.list[arrayIndex].on === true"), conditionOf("alert(1)"), conditionOf(undefined), conditionOf("model.a === true && f()")]).toEqual([undefined, undefined, undefined, undefined]);
});
