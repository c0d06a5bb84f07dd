import { expect, test } from "vitest";
import { choicesOf, defaultOf, derive, labelOf, resolve, variantsOf, type Schema } from "./schema";

const SCHEMA: Schema = {
  $defs: { Every: { type: "object", properties: { type: { const: "EVERY" } } }, Some: { type: "object", properties: { type: { const: "SOME" }, seconds: { type: "integer", default: 60 } } } },
  properties: { how: { oneOf: [{ $ref: "#/$defs/Every" }, { $ref: "#/$defs/Some" }] }, level: { enum: ["A", "B", null] } },
};

test("variants are told apart by their constant field, and begin with their defaults", () => {
  const how = SCHEMA.properties?.["how"] ?? {};
  const found = variantsOf(how, SCHEMA);
  expect([found?.tag, found?.variants.map(({ name }) => name)]).toEqual(["type", ["EVERY", "SOME"]]);
  expect(defaultOf(found?.variants[1]?.schema ?? {}, SCHEMA)).toEqual({ type: "SOME", seconds: 60 });
  expect(defaultOf(how, SCHEMA)).toEqual({ type: "EVERY" });
});

test("words to choose from leave null out", () => {
  expect(choicesOf(SCHEMA.properties?.["level"] ?? {})?.map(({ value }) => value)).toEqual(["A", "B"]);
});

test("a reference to itself ends", () => {
  expect(resolve({ $ref: "#/$defs/x" }, { $defs: { x: { $ref: "#/$defs/x" } } })).toEqual({ $ref: "#/$defs/x" });
});

test("values without a schema get fields by their names and types", () => {
  const { properties } = derive({ scriptLang: "TBEL", jsScript: "", headers: {}, keys: [], password: "", count: 1, on: true });
  expect(properties).toMatchObject({ scriptLang: { enum: ["TBEL", "JS"] }, jsScript: { "x-editor": "script" }, headers: { additionalProperties: { type: "string" } }, keys: { type: "array" }, password: { "x-editor": "password" }, count: { type: "number" }, on: { type: "boolean" } });
  expect(labelOf("startIntervalTimeUnit")).toBe("Start interval time unit");
});
