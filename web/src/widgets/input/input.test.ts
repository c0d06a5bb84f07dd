import { expect, test } from "vitest";
import { readKey, readSource } from "@/dashboard/model";
import { faultOf, fieldOf, inputOf, opens, valueOf, type InputField } from "./fields";
import { olderForm } from "./olderForms";
import { fitted, isPicture } from "./pictures";
import { codeOf } from "./QrCode";

const field = (settings: object): InputField => fieldOf(readKey({ name: "k", type: "attribute", settings }), {});

test("each kind of field shows stored values and gives them back", () => {
  const kinds: [string, unknown, unknown][] = [
    ["string", "a", "a"], ["double", 1.5, 1.5], ["integer", 7, 7], ["booleanSwitch", true, true], ["booleanCheckbox", "false", false],
    ["JSON", { a: 1 }, { a: 1 }], ["time", 3_660_000, 3_660_000], ["select", "x", "x"], ["color", "#fff", "#fff"],
  ];
  for (const [kind, stored, saved] of kinds) {
    const one = field({ dataKeyValueType: kind });
    expect(valueOf(one, inputOf(one, stored)), kind).toEqual(saved);
  }
  const noon = new Date(2026, 2, 4, 12, 30).getTime();
  const moment = field({ dataKeyValueType: "dateTime" });
  expect(inputOf(moment, noon)).toBe("2026-03-04T12:30");
  expect(valueOf(moment, "2026-03-04T12:30")).toBe(noon);
  expect(valueOf(field({ dataKeyValueType: "date" }), "2026-03-04")).toBe(new Date(2026, 2, 4).getTime());
  expect(valueOf(field({}), "")).toBeNull();
  const choice = field({ dataKeyValueType: "select", selectOptions: [{ value: "NULL", label: "None" }, { value: "b" }] });
  expect([inputOf(choice, null), valueOf(choice, "null"), choice.options[1]?.label]).toEqual(["null", null, "b"]);
});

test("what is wrong is said before anything is saved", () => {
  const integer = field({ dataKeyValueType: "integer", minValue: 1, maxValue: 9, required: true, maxValueErrorMessage: "too much" });
  expect(["", "x", "1.5", "0", "10", "5"].map((input) => faultOf(integer, input))).toEqual(["A value is needed.", "This is no number.", "This is no whole number.", "At least 1", "too much", undefined]);
  expect(faultOf(field({ dataKeyValueType: "JSON" }), "{a")).toBe("This is no JSON.");
  expect(faultOf(field({ dataKeyValueType: "dateTime" }), "yesterday")).toBe("This is no date.");
  expect([opens("false"), opens(false), opens(""), opens("on"), opens(1)]).toEqual([false, false, false, true, true]);
});

test("older forms become fields of the form for many values", () => {
  const source = readSource({ type: "entity", dataKeys: [{ name: "latitude", type: "attribute", label: "Lat" }, { name: "longitude", type: "attribute" }] });
  const one = olderForm("system.input_widgets.update_shared_integer_attribute", { labelValue: "Speed", minValue: 2 });
  expect(one?.fieldsOf(source)).toMatchObject([{ label: "Speed", place: "shared", kind: "integer", min: 2, required: true }]);
  const place = olderForm("system.input_widgets.update_location_timeseries", {});
  expect(place?.fieldsOf(source)).toMatchObject([{ place: "timeseries", min: -90, max: 90 }, { min: -180, max: 180 }]);
  expect(place?.location).toEqual({ latitude: "latitude", longitude: "longitude", precise: false });
  expect(olderForm("system.input_widgets.update_boolean_timeseries", {})?.buttons).toBe(false);
  expect(olderForm("system.input_widgets.update_json_attribute", { attributeScope: "SHARED_SCOPE" })?.fieldsOf(source)).toMatchObject([{ kind: "JSON", place: "shared" }]);
  expect(olderForm("system.input_widgets.update_multiple_attributes", {})).toBeUndefined();
});

test("pictures are told from what is none, and codes hold their text", () => {
  expect([isPicture("data:image/png;base64,AA"), isPicture("data:text/html,x"), isPicture("javascript:1")]).toEqual([true, false, false]);
  expect(fitted(4000, 2000, 640, 480)).toEqual({ width: 640, height: 320 });
  expect(codeOf("grün")?.size).toBe(21 + 8);
  expect(codeOf("x".repeat(5_000))).toBeUndefined();
});
