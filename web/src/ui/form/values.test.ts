import { expect, test } from "vitest";
import { codeText, fromRows, initialValues, kindOfValue, ratesOf, ratesText, toRows, unitForSystems, valueAt, withCode, withValue, wordsOf } from "./values";

test("values are read and written by path, and others stay", () => {
  const stored = { a: { b: 1, c: 2 }, d: 3 };
  expect(valueAt(stored, "a.b")).toBe(1);
  expect(valueAt(stored, "d.x.y")).toBeUndefined();
  expect(withValue(stored, "a.b", 9)).toEqual({ a: { b: 9, c: 2 }, d: 3 });
  expect(withValue({}, "x.y", null)).toEqual({ x: { y: null } });
  expect(initialValues([{ name: "a.b", label: "", initial: 7 }, { name: "n", label: "", initial: "x" }], stored)).toEqual({ ...stored, n: "x" });
});

test("rows of a map keep what no field shows", () => {
  const stored = { CRITICAL: { condition: 1, extra: 2 } };
  expect(fromRows(toRows(stored, "severity"), "severity")).toEqual(stored);
  expect(fromRows([{ severity: "" }], "severity")).toEqual({});
  expect(toRows(null)).toEqual([]);
});

test("rate limits are read and written as ThingsBoard does", () => {
  expect(ratesOf("100:1,2000:60")).toEqual([{ count: 100, seconds: 1 }, { count: 2000, seconds: 60 }]);
  expect(ratesText(ratesOf("100:1,x,2000:60"))).toBe("100:1,2000:60");
  expect(ratesText([])).toBeNull();
  expect(wordsOf("SKIP_ALL_FAILURES")).toBe("Skip all failures");
  expect(["OTA_PACKAGE", "REST_API_RULE_ENGINE_CALL", "ALARM_ACK", "JS_MODULE", "Plain"].map(wordsOf)).toEqual(["OTA package", "REST API rule engine call", "Alarm acknowledged", "JavaScript module", "Plain"]);
});

test("values of any type, functions with modules and units keep what they are", () => {
  expect([true, 0, "x", null, [], { a: 1 }].map(kindOfValue)).toEqual(["BOOLEAN", "DOUBLE", "STRING", "STRING", "JSON", "JSON"]);
  const stored = { body: "return data;", modules: { lib: "tb-resource;/api/resource/js_module/tenant/lib.js" } };
  expect(codeText(stored)).toBe("return data;");
  expect(withCode(stored, "return 1;")).toEqual({ ...stored, body: "return 1;" });
  expect(codeText(undefined)).toBe("");
  expect(withCode("a", "b")).toBe("b");
  expect(unitForSystems("°C", true)).toEqual({ from: "°C", METRIC: "°C", IMPERIAL: "°C", HYBRID: "°C" });
  expect(unitForSystems({ from: "°C", METRIC: "°C", IMPERIAL: "°F", HYBRID: "K" }, false)).toBe("°C");
  expect(unitForSystems(null, true)).toMatchObject({ from: "" });
});
