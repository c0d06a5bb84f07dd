import { expect, test } from "vitest";
import { argumentsOf, scriptsOf } from "./scripts";
import { evaluate } from "./expression";
import { devicesOf, firstKeys, isReplayed, profileOf, seriesOf, targetOf } from "./replayed";

test("expressions have the values that the server gives them", () => {
  const values = { a: 3, b: 4, temp_1: 25.5 };
  for (const [text, expected] of [
    ["1 + 2 * 3", 7], ["[1 + 2] * {3}", 9], ["2 - 3 - 4", -5], ["24 / 4 / 2", 3], ["-7 % 4", -3], ["9 ÷ 3", 3], ["2 ^ 3 ^ 2", 512], ["-2 ^ 2", -4],
    ["(-2) ^ 2", 4], ["2 ^ -1", 0.5], ["2 ^ -2 * 4", 1], ["2 - -3", 5], ["--3", 3], ["1e3 + 1.5E-1", 1000.15], [".5 + 1.", 1.5], ["(temp_1 - 32) / 1.8", (25.5 - 32) / 1.8],
    ["2a", 6], ["2(3 + 4)", 14], ["(1 + 1)(2 + 2)", 8], ["ab", 12], ["a b", 12], ["a2", 6], ["2a^2", 18], ["12 / 2a", 18], ["2sqrt(b)", 4], ["-2a", -6],
    ["log10(100)", 2], ["logab(2, 8)", 3], ["pow(2, 10)", 1024], ["sqrt(a * a + b * b)", 5], ["ln(e)", 1], ["ceil(1.2) + floor(1.8)", 3],
  ] as const) {
    expect(evaluate(text, values), text).toBeCloseTo(expected, 9);
  }
  for (const wrong of ["", "1 +", "x + 1", "1 / 0", "7 % 0", "sin", "sin(1, 2)", "(1", "1)", "ln(0)", "2 & 3", "constructor"]) {
    expect(() => evaluate(wrong, values), wrong).toThrow();
  }
});

test("scripts are found where a form has them, with their arguments", () => {
  const field = { type: "SCRIPT", configuration: { expression: "return a;", arguments: { a: { refEntityKey: { type: "TS_ROLLING", key: "t" } }, b: { refEntityKey: { type: "ATTRIBUTE", key: "x" }, defaultValue: "7" } } } };
  expect(scriptsOf("CALCULATED_FIELD", field).map(({ path }) => path)).toEqual(["configuration.expression"]);
  const made = argumentsOf(field, 1_000_000);
  expect(made["b"]).toEqual({ type: "SINGLE_VALUE", ts: 1_000_000, value: 7 });
  expect(made["a"]).toMatchObject({ type: "TS_ROLLING", values: [{ ts: expect.any(Number) as number, value: 0 }, { value: 0 }, { value: 0 }] });
  const rule = { configuration: { createRules: { MAJOR: { condition: { expression: { type: "TBEL", expression: "return true;" } } }, MINOR: { condition: { expression: { type: "SIMPLE" } } } }, clearRule: { condition: { expression: { type: "TBEL", expression: "return false;" } } } }, hasClearRule: true };
  expect(scriptsOf("ALARM_RULE", rule).map(({ label }) => label)).toEqual(["MAJOR", "Clears"]);
});

test("a replay begins with the devices of the target and the series of its own that a field reads", () => {
  const source = (type: string, key: string, more: object = {}): object => ({ refEntityKey: { type, key }, ...more });
  const values = { entityId: { entityType: "DEVICE_PROFILE", id: "p" }, configuration: { arguments: { t: source("TS_LATEST", "temperature"), again: source("TS_ROLLING", "temperature"), limit: source("ATTRIBUTE", "limit"), owners: source("TS_LATEST", "price", { refDynamicSourceConfiguration: { type: "CURRENT_OWNER" } }), named: source("TS_LATEST", "x", { refEntityId: { entityType: "ASSET", id: "a" } }) } } };
  expect(devicesOf(targetOf(values))).toEqual({ which: "profile", deviceProfileId: { entityType: "DEVICE_PROFILE", id: "p" } });
  expect(devicesOf({ entityType: "DEVICE", id: "d" })).toEqual({ which: "devices", deviceIds: ["d"] });
  expect(devicesOf({ entityType: "ASSET", id: "a" })).toEqual({ which: "all" });
  expect(targetOf({ entityId: { entityType: "DEVICE" } })).toBeUndefined();
  expect(seriesOf(values)).toEqual(["temperature"]);
  expect(firstKeys("ALARM_RULE", values)).toEqual([]);
  expect(firstKeys("CALCULATED_FIELD", values)).toEqual(["temperature"]);
});

test("a device profile with alarm rules of its own is replayed on its devices, one without is not", () => {
  const profile = { id: { entityType: "DEVICE_PROFILE", id: "p" }, profileData: { alarms: [{ alarmType: "Hot" }] } };
  expect(isReplayed("DEVICE_PROFILE", profile)).toBe(true);
  expect(isReplayed("DEVICE_PROFILE", { ...profile, profileData: { alarms: null } })).toBe(false);
  expect(isReplayed("ALARM_RULE", {})).toBe(true);
  expect(isReplayed("DEVICE", {})).toBe(false);
  expect(devicesOf(profileOf(profile))).toEqual({ which: "profile", deviceProfileId: profile.id });
  expect(devicesOf(profileOf({})), "a new one has no devices, so that it is tried on any").toEqual({ which: "all" });
});
