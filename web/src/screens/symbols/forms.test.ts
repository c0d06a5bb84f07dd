import { expect, test } from "vitest";
import type { FormField, FormValues } from "@/ui/form/values";
import { BEHAVIORS, settleBehavior } from "./forms";
import { PROPERTIES, settleProperty } from "./properties";

/** Returns the names of the fields that are shown for a row. */
function shown(form: readonly FormField[], row: FormValues): string[] {
  return (form[0]?.fields ?? []).flatMap(({ name, when }) => (name !== "" && (when?.(row) ?? true) ? [name] : []));
}

test("nothing of a behaviour has to be written as JSON but values that are JSON", () => {
  const json = (BEHAVIORS[0]?.fields ?? []).filter(({ type }) => type === "json").map(({ name }) => name);
  expect(json).toEqual(["defaultGetValueSettings.defaultValue"]);
  const asked = { type: "value", valueType: "BOOLEAN", defaultGetValueSettings: { action: "EXECUTE_RPC", executeRpc: { requestPersistent: true }, dataToValue: { type: "FUNCTION" } } };
  const get = "defaultGetValueSettings";
  expect(shown(BEHAVIORS, asked)).toEqual(expect.arrayContaining([`${get}.executeRpc.requestTimeout`, `${get}.executeRpc.persistentPollingInterval`, `${get}.dataToValue.dataToValueFunction`, `${get}.dataToValue.compareToValue`]));
  expect(shown(BEHAVIORS, { type: "value", valueType: "DOUBLE", [get]: { action: "GET_ALARM_STATUS" } })).toEqual(expect.arrayContaining([`${get}.getAlarmStatus.severityList`, `${get}.getAlarmStatus.typeList`]));
  const call = { type: "widgetAction", defaultWidgetActionSettings: { type: "mobileAction", mobileAction: { type: "makePhoneCall" } } };
  expect(shown(BEHAVIORS, call)).toEqual(expect.arrayContaining(["defaultWidgetActionSettings.mobileAction.getPhoneNumberFunction"]));
  expect(shown(BEHAVIORS, call)).not.toContain("defaultWidgetActionSettings.mobileAction.processImageFunction");
});

test("a behaviour follows its kind and the type of its value, and keeps the rest", () => {
  const begun = settleBehavior({ type: "value", valueType: "BOOLEAN", own: 1 }, {});
  expect(begun).toMatchObject({ own: 1, defaultGetValueSettings: { action: "DO_NOTHING", defaultValue: false } });
  expect(settleBehavior({ ...begun, valueType: "DOUBLE" }, begun)).toMatchObject({ own: 1, defaultGetValueSettings: { action: "DO_NOTHING", defaultValue: 0 } });
  const sets = settleBehavior({ ...begun, type: "action" }, begun);
  expect(sets).toMatchObject({ own: 1, type: "action", defaultSetValueSettings: { valueToData: { type: "CONSTANT" } } });
  expect(sets).not.toHaveProperty("defaultGetValueSettings");
  expect(settleBehavior({ ...sets, valueType: "STRING" }, sets)).toMatchObject({ defaultSetValueSettings: { action: "EXECUTE_RPC", valueToData: { type: "VALUE" } } });
  const acts = settleBehavior({ ...sets, type: "widgetAction" }, sets);
  expect(acts).toMatchObject({ type: "widgetAction", own: 1, defaultWidgetActionSettings: { type: "doNothing" } });
  // What was typed stays while nothing about its kind changes.
  expect(settleBehavior({ ...acts, name: "" }, acts)).toEqual({ ...acts, name: "" });
});

test("a property follows its kind, and keeps what is not of another one", () => {
  const number = settleProperty({ id: "a", type: "number", default: "x", min: 1, own: 2, items: [] }, { id: "a", type: "select" });
  expect(number).toEqual({ id: "a", type: "number", default: 0, min: 1, own: 2 });
  expect(settleProperty({ type: "color_settings" }, {})).toMatchObject({ default: { type: "constant", color: "#000" } });
  expect(settleProperty({ type: "array", arrayItemType: "fieldset", properties: [{ id: "b" }] }, { type: "fieldset" })).toEqual({ type: "array", arrayItemType: "fieldset", properties: [{ id: "b" }] });
  expect(settleProperty({ type: "text", default: "mine", own: 1 }, { type: "text", default: "" })).toEqual({ type: "text", default: "mine", own: 1 });
});

test("properties within properties, and entries of lists, have the same fields", () => {
  const within = PROPERTIES[0]?.fields?.find(({ name }) => name === "properties");
  expect(within?.fields).toBe(PROPERTIES[0]?.fields);
  expect(shown(PROPERTIES, { type: "array", arrayItemType: "select" })).toEqual(expect.arrayContaining(["arrayItemName", "items", "multiple", "default"]));
  expect(shown(PROPERTIES, { type: "font" })).toEqual(expect.arrayContaining(["default.family", "default.lineHeight"]));
  expect(shown(PROPERTIES, { type: "color_settings", default: { type: "range", rangeList: { range: [] } } })).toContain("default.rangeList.range");
  expect(shown(PROPERTIES, { type: "htmlSection" })).not.toContain("rowClass");
  // One field alone is shown for what a property begins with.
  for (const type of ["text", "number", "units", "json", "select", "radios", "datetime", "image", "switch"]) {
    expect(shown(PROPERTIES, { type }).filter((name) => name === "default")).toHaveLength(1);
  }
});
