import { expect, test } from "vitest";
import { initialValues, type FormValues } from "@/ui/form/values";
import { argumentFields, namesOfArguments, settleArgument, settleSource, storedArgument, storedSource, withSource } from "./argument";
import { completeAlarmRule } from "./alarmRule";
import { completeField } from "./calculatedField";

const key = { type: "TS_LATEST", key: "t" };

test("each source is read as it is stored, and stored again as it was", () => {
  const levels = [{ direction: "FROM", relationType: "Contains" }];
  const stored: [FormValues, string][] = [
    [{}, "CURRENT"],
    [{ refEntityId: { entityType: "DEVICE", id: "d" } }, "DEVICE"],
    [{ refEntityId: { entityType: "TENANT", id: "t" } }, "TENANT"],
    [{ refDynamicSourceConfiguration: { type: "CURRENT_OWNER" } }, "CURRENT_OWNER"],
    [{ refDynamicSourceConfiguration: { type: "RELATION_PATH_QUERY", levels } }, "RELATION_PATH_QUERY"],
  ];
  for (const [one, source] of stored) {
    const shown = withSource({ ...one, perimeterKeyName: "zone" });
    expect(shown["source"]).toBe(source);
    expect(storedSource(shown, "other")).toEqual({ ...one, perimeterKeyName: "zone" });
  }
  expect(storedSource({ source: "TENANT" }, "mine")).toEqual({ refEntityId: { entityType: "TENANT", id: "mine" } });
});

test("another source begins without what was chosen for the one before", () => {
  const device = { source: "DEVICE", refEntityId: { entityType: "DEVICE", id: "d" }, refEntityKey: key };
  expect(settleSource({ ...device, source: "ASSET" }, device)).toEqual({ source: "ASSET", refEntityKey: key });
  expect(settleSource({ ...device, source: "RELATION_PATH_QUERY" }, device)).toMatchObject({ refDynamicSourceConfiguration: { levels: [{ direction: "FROM" }] } });
  expect(settleSource({ ...device, refEntityKey: {} }, device)).toMatchObject({ refEntityId: { id: "d" } });
});

test("a new argument is called as its key until somebody names it, and a stored one keeps its name", () => {
  const begun = initialValues(argumentFields({ others: true }), {});
  const keyed = settleArgument({ ...begun, refEntityKey: { ...key, key: "2nd level" } }, begun);
  expect(keyed["name"]).toBe("_2nd_level");
  const named = settleArgument({ ...keyed, name: "level" }, keyed);
  expect(settleArgument({ ...named, refEntityKey: { ...key, key: "other" } }, named)["name"]).toBe("level");
  expect(storedArgument(keyed, "t")).toEqual({ name: "_2nd_level", refEntityKey: { ...key, key: "2nd level" } });
  const stored = { name: "t", refEntityKey: key };
  expect(settleArgument({ ...stored, refEntityKey: { ...key, key: "other" } }, stored)["name"]).toBe("t");
  expect(namesOfArguments({ values: { configuration: { arguments: { level: {} } } }, names: {} })).toEqual([{ value: "level", label: "level" }]);
});

test("an argument is stored with the settings of its kind alone", () => {
  const row = { source: "CURRENT_OWNER", refEntityKey: { ...key, scope: "SHARED_SCOPE" }, defaultValue: "7", timeWindow: 60_000, limit: 5 };
  expect(storedArgument(row, "t")).toEqual({ refEntityKey: key, defaultValue: "7", refDynamicSourceConfiguration: { type: "CURRENT_OWNER" } });
  expect(storedArgument({ ...row, refEntityKey: { type: "ATTRIBUTE", key: "t" } }, "t")).toMatchObject({ refEntityKey: { scope: "SERVER_SCOPE" } });
  expect(storedArgument({ ...row, source: "CURRENT", refEntityKey: { type: "TS_ROLLING", key: "t" } }, "t")).toEqual({ refEntityKey: { type: "TS_ROLLING", key: "t" }, timeWindow: 60_000, limit: 5 });
});

test("fields and rules store the sources that their type takes", () => {
  const configuration = { arguments: { a: { source: "TENANT", refEntityKey: key } }, output: { type: "TIME_SERIES" } };
  const sourceOf = (type: string, more: FormValues = {}): unknown => (completeField({ type, configuration: { ...configuration, ...more } }, "t")["configuration"] as FormValues)["arguments"];
  expect(sourceOf("SCRIPT")).toMatchObject({ a: { refEntityId: { entityType: "TENANT", id: "t" } } });
  expect(sourceOf("ENTITY_AGGREGATION")).toEqual({ a: { refEntityKey: key } });
  expect(sourceOf("PROPAGATION")).toEqual({ a: { refEntityKey: key } });
  expect(sourceOf("PROPAGATION", { applyExpressionToResolvedArguments: true })).toMatchObject({ a: { refEntityId: { id: "t" } } });
  expect(completeAlarmRule({ configuration }, "t")["configuration"]).toMatchObject({ type: "ALARM", arguments: { a: { refEntityId: { id: "t" } } } });
});
