import { expect, test } from "vitest";
import german from "@/i18n/de.json";
import nodes from "@/i18n/de.nodes.json";
import { NAMES, NAMES_OF_FIELDS, nameOf } from "./constants";
import { choicesOf, defaultOf, derive, labelOf, offeredBy, resolve, textsOf, variantsOf, type Schema } from "./schema";

const SCHEMA: Schema = {
  $defs: { Every: { type: "object", properties: { type: { const: "EVERY" } } }, Some: { type: "object", properties: { type: { const: "SOME" }, seconds: { type: "integer", default: 60 } } } },
  properties: { how: { oneOf: [{ $ref: "#/$defs/Every" }, { $ref: "#/$defs/Some" }] }, level: { enum: ["A", "B", null] } },
};

test("variants are told apart by their constant field, and begin with their defaults", () => {
  const how = SCHEMA.properties?.["how"] ?? {};
  const found = variantsOf(how, SCHEMA);
  expect([found?.tag, found?.variants.map(({ value }) => value)]).toEqual(["type", ["EVERY", "SOME"]]);
  expect(defaultOf(found?.variants[1]?.schema ?? {}, SCHEMA)).toEqual({ type: "SOME", seconds: 60 });
  expect(defaultOf(how, SCHEMA)).toEqual({ type: "EVERY" });
});

test("words to choose from leave null out", () => {
  expect(choicesOf(SCHEMA.properties?.["level"] ?? {})?.map(({ value }) => value)).toEqual(["A", "B"]);
});

test("constants are offered as words, and what is none as it is", () => {
  expect(["ON_EVERY_MESSAGE", "SERVER_SCOPE", "CONTAINS", "WEBSOCKETS_ONLY", "JSON_SCHEMA", "JS", "FROM", "MQTT_5", "ALARM_ORIGINATOR"].map(nameOf)).toEqual([
    "On every message", "Server scope", "Contains", "WebSockets only", "JSON schema", "JavaScript", "From the originator", "MQTT 5", "Alarm originator",
  ]);
  const values = ["POST", "DELETE", "TBEL", "ID", "UTF-8", "TLSv1.2", "all", "-1", "smtp"];
  expect(values.map(nameOf)).toEqual(values);
});

test("choices and variants have their titles, or else the names of their constants; their values stay", () => {
  expect(choicesOf({ enum: ["SERVER_SCOPE", null, "GET"] })).toEqual([{ value: "SERVER_SCOPE", label: "Server scope" }, { value: "GET", label: "GET" }]);
  expect(choicesOf({ oneOf: [{ const: null }, { const: "true", title: "HTML" }, { const: "TIME_SERIES" }] })).toEqual([{ value: "true", label: "HTML" }, { value: "TIME_SERIES", label: "Time series" }]);
  const tagged = (value: string): Schema => ({ type: "object", properties: { type: { const: value } } });
  const how: Schema = { oneOf: [tagged("ON_EVERY_MESSAGE"), { ...tagged("cert.PEM"), title: "A certificate" }, { type: "null" }] };
  expect(variantsOf(how, how)?.variants).toMatchObject([{ value: "ON_EVERY_MESSAGE", label: "On every message" }, { value: "cert.PEM", label: "A certificate" }]);
});

test("a field names values that say nothing without it, and only its own", () => {
  const kind: Schema = { enum: ["false", "true", "dynamic", null] };
  expect(choicesOf(kind, "mailBodyType")?.map(({ label }) => label)).toEqual(["Plain text", "HTML", "As the template says"]);
  expect(choicesOf(kind, "other")?.map(({ label }) => label)).toEqual(["false", "true", "dynamic"]);
  const form = { properties: { list: { items: { properties: { acks: { anyOf: [{ enum: ["-1", "0"] }, { type: "null" }] } } } } } };
  expect(offeredBy(form)).toEqual([{ value: "-1", label: "All replicas, as -1" }, { value: "0", label: "Nobody" }]);
});

test("a choice that may be missing is one all the same", () => {
  const known = resolve({ anyOf: [{ $ref: "#/$defs/Part" }, { type: "null" }], description: "Where to." }, { $defs: { Part: { type: "string", enum: ["DATA", "METADATA"], description: "A part." } } });
  expect([choicesOf(known)?.map(({ label }) => label), known.description]).toEqual([["Message body", "Metadata"], "Where to."]);
});

test("names of constants are among the texts of a form, and have their German even where there is no schema", () => {
  expect(textsOf({ properties: { how: { oneOf: [{ properties: { type: { const: "SKIP" } } }, { type: "null" }] }, level: { anyOf: [{ enum: ["GET", "SERVER_SCOPE"] }, { type: "null" }] } } })).toEqual(new Set(["How", "Level", "Skip", "Type", "Server scope"]));
  const known: Record<string, string> = { ...nodes, ...german };
  const derived = ["scriptLang", "scope", "direction", "fetchTo", "severity", "requestMethod", "startTimeUnit"].flatMap((name) => choicesOf(derive(null, name)) ?? []);
  expect(derived.length).toBeGreaterThan(20);
  const named = derived.filter(({ value, label }) => label !== value).map(({ label }) => label);
  const ofFields = Object.values(NAMES_OF_FIELDS).flatMap((names) => Object.values(names));
  expect([...Object.values(NAMES), ...ofFields, ...named].filter((text) => !(text in known))).toEqual([]);
});

test("a reference to itself ends", () => {
  expect(resolve({ $ref: "#/$defs/x" }, { $defs: { x: { $ref: "#/$defs/x" } } })).toEqual({ $ref: "#/$defs/x" });
});

test("values without a schema get fields by their names and types", () => {
  const { properties } = derive({ scriptLang: "TBEL", jsScript: "", headers: {}, keys: [], password: "", count: 1, on: true });
  expect(properties).toMatchObject({ scriptLang: { enum: ["TBEL", "JS"] }, jsScript: { "x-editor": "script" }, headers: { additionalProperties: { type: "string" } }, keys: { type: "array" }, password: { "x-editor": "password" }, count: { type: "number" }, on: { type: "boolean" } });
  expect(labelOf("startIntervalTimeUnit")).toBe("Start interval time unit");
  expect(["smtpHost", "clientId", "tlsVersion"].map(labelOf)).toEqual(["SMTP host", "Client ID", "TLS version"]);
});
