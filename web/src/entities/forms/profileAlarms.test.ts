import { expect, test } from "vitest";
import { initialValues, toRows, type FormValues } from "@/ui/form/values";
import { PROFILE_ALARMS, seriesOfAlarms, shownAlarms, storedAlarms } from "./profileAlarms";
import { completeDeviceProfile } from "./profiles";

const NUMBER = { type: "NUMERIC", operation: "GREATER", value: { defaultValue: 50, userValue: null, dynamicValue: { sourceType: "CURRENT_DEVICE", sourceAttribute: "limit", inherit: true } } };
const filter = (predicate: object, more: object = {}): object => ({ key: { type: "TIME_SERIES", key: "temperature" }, valueType: "NUMERIC", predicate, ...more });
const rule = (filters: object[], spec: object = { type: "SIMPLE" }, schedule: object | null = null): object => ({ condition: { condition: filters, spec }, schedule, alarmDetails: "It is ${temperature}", dashboardId: null });

const STORED = [
  {
    id: "8f1", alarmType: "Hot", propagate: true, propagateRelationTypes: ["Contains"],
    createRules: {
      CRITICAL: rule([filter(NUMBER)], { type: "DURATION", extra: 1, unit: "MINUTES", predicate: { defaultValue: 5, userValue: null, dynamicValue: null } }, { type: "SPECIFIC_TIME", timezone: "Europe/Berlin", daysOfWeek: [1, 5], startsOn: 0, endsOn: 3_600_000 }),
      MINOR: rule([filter({ type: "COMPLEX", operation: "OR", predicates: [NUMBER, { type: "COMPLEX", operation: "AND", predicates: [NUMBER] }] }), filter({ type: "BOOLEAN", operation: "EQUAL", value: { defaultValue: true, dynamicValue: null } }, { key: { type: "ATTRIBUTE", key: "armed" }, valueType: "BOOLEAN" })]),
    },
    clearRule: rule([filter({ ...NUMBER, operation: "LESS" })], { type: "SIMPLE", extra: 1 }),
  },
  { id: "8f2", alarmType: "Still", createRules: {}, clearRule: null },
  { id: "8f3", alarmType: "Later", createRules: { MAJOR: rule([filter(NUMBER)], { type: "OF_LATER", unit: "DAYS", predicate: { defaultValue: 1 }, extra: 1 }) }, clearRule: null },
];

test("stored alarm rules come out of their form as they went in", () => {
  expect(storedAlarms(shownAlarms(STORED))).toEqual(STORED);
  expect(storedAlarms(STORED), "also where no form has shown them").toEqual(STORED);
  expect(storedAlarms(shownAlarms(null))).toBeNull();
  expect(completeDeviceProfile({ transportType: "DEFAULT", profileData: { alarms: shownAlarms(STORED) } })["profileData"]).toMatchObject({ alarms: STORED });
});

test("a rule that doesn't clear any more, and an attribute that isn't named, are not stored", () => {
  const [hot] = shownAlarms(STORED) as FormValues[];
  expect(storedAlarms([{ ...hot, hasClearRule: false }])).toMatchObject([{ clearRule: null }]);
  const unnamed = { ...NUMBER, value: { defaultValue: 1, dynamicValue: { sourceType: null, sourceAttribute: "limit" } } };
  expect(storedAlarms([{ alarmType: "New", createRules: { MAJOR: rule([filter(unnamed)]) } }])).toMatchObject([{ id: "New", createRules: { MAJOR: { condition: { condition: [{ predicate: { value: { defaultValue: 1, dynamicValue: null } } }] } } } }]);
});

/** The filters' field of a rule that raises an alarm. */
const FILTERS = PROFILE_ALARMS.fields?.find(({ name }) => name === "createRules")?.fields?.find(({ name }) => name === "condition.condition");

test("a comparison follows the type of its value, and several begin with the one that was there", () => {
  const settle = (row: FormValues, before: FormValues): FormValues => FILTERS?.settle?.(row, before) ?? {};
  const fresh = settle(initialValues(FILTERS?.fields ?? [], {}), {});
  expect(fresh).toMatchObject({ valueType: "NUMERIC", predicate: { type: "NUMERIC", operation: "GREATER" } });
  expect(settle({ ...fresh, valueType: "STRING" }, fresh)).toMatchObject({ predicate: { type: "STRING", operation: "EQUAL", value: {} } });
  const several = settle({ ...fresh, several: true }, fresh);
  expect(several).toMatchObject({ predicate: { type: "COMPLEX", operation: "AND", predicates: [{ type: "NUMERIC", operation: "GREATER" }] } });
  expect(settle({ ...several, several: false }, several)["predicate"]).toEqual(fresh["predicate"]);
  expect(initialValues(PROFILE_ALARMS.fields ?? [], {})["hasClearRule"], "a new alarm has no rule that clears it").toBe(false);
});

test("rows are known by their type and severities, and the series that they read are told", () => {
  expect(PROFILE_ALARMS.rowTitle?.(toRows(STORED)[0] ?? {}, { values: {}, names: {} })).toEqual({ title: "Hot", note: "CRITICAL, MINOR" });
  expect(seriesOfAlarms(STORED)).toEqual(["temperature"]);
});
