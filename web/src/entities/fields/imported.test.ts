import { expect, test } from "vitest";
import { entityKey, importedField, importFields, importValues, lacking, partText, readField } from "./imported";

const device = (id: string) => ({ entityType: "DEVICE", id });
const argument = (more: object = {}): object => ({ refEntityKey: { key: "t", type: "TS_LATEST" }, ...more });

const FIELD = {
  id: { entityType: "CALCULATED_FIELD", id: "f" }, tenantId: { entityType: "TENANT", id: "there" }, version: 3, createdTime: 1,
  name: "Difference", type: "SIMPLE", entityId: { entityType: "DEVICE_PROFILE", id: "p" },
  configuration: {
    type: "SIMPLE", expression: "a - b",
    arguments: { own: argument(), a: argument({ refEntityId: device("x") }), b: argument({ refEntityId: device("x") }), c: argument({ refEntityId: { entityType: "CUSTOMER", id: "y" } }), t: argument({ refEntityId: { entityType: "TENANT", id: "there" } }) },
    zoneGroups: { zones: { refEntityId: { entityType: "ASSET", id: "z" }, perimeterKeyName: "zone" } },
  },
};
const RULE = {
  name: "Hot", entityId: device("d"),
  configuration: { type: "ALARM", arguments: { t: argument() }, createRules: { MAJOR: { condition: {}, dashboardId: { entityType: "DASHBOARD", id: "b" } }, MINOR: { condition: {} } }, clearRule: { condition: {}, dashboardId: { entityType: "DASHBOARD", id: "b" } } },
};

test("a file names each entity once, with all that is of it, and nothing of the installation that it comes from", () => {
  const read = readField("CALCULATED_FIELD", JSON.stringify(FIELD));
  expect(read.target).toEqual({ entityType: "DEVICE_PROFILE", id: "p" });
  expect(read.references.map(({ id, of }) => [entityKey(id), of])).toEqual([["DEVICE x", ["a", "b"]], ["CUSTOMER y", ["c"]], ["ASSET z", ["zones"]]]);
  expect(Object.keys(read.content).sort()).toEqual(["configuration", "name", "type"]);
  expect(readField("ALARM_RULE", JSON.stringify(RULE)).references).toEqual([{ id: { entityType: "DASHBOARD", id: "b" }, of: ["MAJOR", "CLEAR"] }]);
});

test("rules are named in the language of the person, arguments by the names that they were given", () => {
  const text = (entityType: string, name: string): string => partText({ entityType, id: "1" }, name, (word) => `<${word}>`);
  expect([text("DASHBOARD", "MAJOR"), text("DASHBOARD", "CLEAR"), text("DEVICE", "key"), text("DEVICE", "CRITICAL")]).toEqual(["<MAJOR>", "<CLEAR>", "key", "CRITICAL"]);
});

test("what is saved names the entities that were chosen, and the tenant of whoever imports", () => {
  const read = readField("CALCULATED_FIELD", JSON.stringify(FIELD));
  const missing = read.references.filter(({ id }) => id.id !== "z");
  const filled = { name: "Renamed", entityId: device("mine"), instead: { 0: device("other"), 1: { entityType: "CUSTOMER", id: "acme" } } };
  const saved = importedField(read, missing, filled, "here");
  expect(saved).toMatchObject({
    name: "Renamed", type: "SIMPLE", entityId: device("mine"),
    configuration: { expression: "a - b", arguments: { own: argument(), a: { refEntityId: device("other") }, b: { refEntityId: device("other") }, c: { refEntityId: { id: "acme" } }, t: { refEntityId: { entityType: "TENANT", id: "here" } } }, zoneGroups: { zones: { refEntityId: { id: "z" } } } },
  });
  expect(JSON.stringify(saved)).not.toContain("there");
  const rule = readField("ALARM_RULE", JSON.stringify(RULE));
  expect(importedField(rule, rule.references, { name: "Hot", entityId: device("mine") }, "here")).toMatchObject({ configuration: { createRules: { MAJOR: { dashboardId: null } }, clearRule: { dashboardId: null } } });
});

test("the target is that of the page, else that of the file where it is here, and nothing is saved without one", () => {
  const read = readField("CALCULATED_FIELD", JSON.stringify(FIELD));
  expect(importValues(read, device("page"), () => false)).toEqual({ name: "Difference", entityId: device("page") });
  expect(importValues(read, undefined, () => true)).toEqual({ name: "Difference", entityId: { entityType: "DEVICE_PROFILE", id: "p" } });
  expect(importValues(read, undefined, () => false)).toEqual({ name: "Difference", entityId: { entityType: "DEVICE_PROFILE" } });
  const [first] = read.references;
  const missing = first === undefined ? [] : [first];
  expect(lacking(missing, { entityId: { entityType: "DEVICE" } })).toBe("target");
  expect(lacking(missing, { entityId: device("d") })).toBe("replacement");
  expect(lacking(missing, { entityId: device("d"), instead: { 0: device("e") } })).toBeUndefined();
  const rule = readField("ALARM_RULE", JSON.stringify(RULE));
  expect(lacking(rule.references, { entityId: device("d") }), "a rule does without its dashboard").toBeUndefined();
  expect(importFields("ALARM_RULE", rule.references, () => "Dashboard").map(({ name, list }) => [name, list])).toContainEqual(["instead.0", "/api/tenant/dashboards"]);
});

test("a file of the other kind, or of something else, is refused with a reason", () => {
  expect(() => readField("CALCULATED_FIELD", JSON.stringify(RULE))).toThrow("among the alarm rules");
  expect(() => readField("ALARM_RULE", JSON.stringify(FIELD))).toThrow("among the calculated fields");
  expect(() => readField("ALARM_RULE", '{"title":"x"}')).toThrow("holds no alarm rule");
  expect(() => readField("ALARM_RULE", "[]")).toThrow("holds no alarm rule");
  expect(() => readField("ALARM_RULE", "no")).toThrow(SyntaxError);
});
