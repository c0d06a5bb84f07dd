// The part of JSON Schema that forms are made of, and a schema for values that have none.

import { titleOf } from "@/ui/words";
import { nameIn, nameOf } from "./constants";

export type Json = Record<string, unknown>;

export interface Schema {
  type?: string | string[];
  title?: string;
  description?: string;
  default?: unknown;
  enum?: unknown[];
  const?: unknown;
  oneOf?: Schema[];
  anyOf?: Schema[];
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  additionalProperties?: boolean | Schema;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  $ref?: string;
  $defs?: Record<string, Schema>;
  "x-editor"?: string;
  "x-unit"?: string;
  "x-language"?: string;
}

const isRecord = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value);

/** Follows references within the schema. What may be missing is what it is otherwise. */
export function resolve(schema: Schema, root: Schema, depth = 0): Schema {
  const { $ref, anyOf, ...own } = schema;
  const [given, ...more] = anyOf?.filter((one) => one.type !== "null") ?? [];
  if (given !== undefined && more.length === 0 && depth <= 20) {
    return { ...resolve(given, root, depth + 1), ...own };
  }
  if ($ref === undefined || depth > 20) {
    return schema;
  }
  const target = $ref
    .replace(/^#\/?/, "")
    .split("/")
    .filter((part) => part !== "")
    .reduce<unknown>((at, part) => (isRecord(at) ? at[part.replace(/~1/g, "/").replace(/~0/g, "~")] : undefined), root);
  return { ...(isRecord(target) ? resolve(target as Schema, root, depth + 1) : {}), ...own };
}

export function typeOf(schema: Schema): string | undefined {
  return Array.isArray(schema.type) ? schema.type.find((one) => one !== "null") : (schema.type ?? (schema.properties === undefined ? undefined : "object"));
}

/** One of some words, with the English text that it is offered as. */
export interface Choice {
  value: string;
  label: string;
}

/** A variant of an object, by the word that tells it apart. */
export interface Variant extends Choice {
  schema: Schema;
}

/** Returns the choices of a value that is one of some words: `enum`, or `oneOf` constants. The field names what no schema gives a title. */
export function choicesOf(schema: Schema, field = ""): Choice[] | undefined {
  const constants = schema.oneOf?.every((one) => "const" in one && one.properties === undefined) === true ? schema.oneOf : undefined;
  const list: Schema[] | undefined = schema.enum?.map((one) => ({ const: one })) ?? constants;
  return list?.filter((one) => one.const !== null).map((one) => ({ value: String(one.const), label: one.title ?? nameIn(field, String(one.const)) }));
}

/** Returns the variants of an object with the field that tells them apart. */
export function variantsOf(schema: Schema, root: Schema): { tag: string; variants: Variant[] } | undefined {
  const list = (schema.oneOf ?? schema.anyOf)?.map((one) => resolve(one, root)).filter((one) => typeOf(one) !== "null");
  const constant = (one: Schema, name: string): unknown => one.properties?.[name]?.const ?? (one.properties?.[name]?.enum?.length === 1 ? one.properties[name].enum?.[0] : undefined);
  const tag = Object.keys(list?.[0]?.properties ?? {}).find((name) => list?.every((one) => constant(one, name) !== undefined));
  return list === undefined || tag === undefined ? undefined : { tag, variants: list.map((one) => ({ value: String(constant(one, tag)), label: one.title ?? nameOf(String(constant(one, tag))), schema: one })) };
}

/** Returns the value that a new item or variant begins with. */
export function defaultOf(schema: Schema, root: Schema): unknown {
  const known = resolve(schema, root);
  if (known.default !== undefined) {
    return structuredClone(known.default);
  }
  if (known.const !== undefined) {
    return known.const;
  }
  const variants = variantsOf(known, root);
  if (variants !== undefined) {
    return defaultOf(variants.variants[0]?.schema ?? {}, root);
  }
  switch (typeOf(known)) {
    case "object":
      return Object.fromEntries(Object.entries(known.properties ?? {}).map(([name, one]) => [name, defaultOf(one, root)]));
    case "array":
      return [];
    case "boolean":
      return false;
    case "string":
      return known.enum?.[0] ?? "";
    default:
      return null;
  }
}

const MAPS = ["dataMapping", "renameKeysMapping", "headers", "otherProperties", "messageAttributes", "clientProperties", "fieldsMapping"];
const UNITS = ["MILLISECONDS", "SECONDS", "MINUTES", "HOURS", "DAYS"];
const ENUMS: Record<string, string[]> = {
  scriptLang: ["TBEL", "JS"],
  scope: ["SERVER_SCOPE", "SHARED_SCOPE", "CLIENT_SCOPE"],
  direction: ["FROM", "TO"],
  fetchTo: ["DATA", "METADATA"],
  severity: ["CRITICAL", "MAJOR", "MINOR", "WARNING", "INDETERMINATE"],
  requestMethod: ["GET", "POST", "PUT", "DELETE", "PATCH"],
};

function editorOf(name: string): string | undefined {
  if (/^(jsScript|tbelScript|alarmDetailsBuild)/.test(name)) {
    return "script";
  }
  if (/(password|secret|privateKey|botToken|sasKey)/i.test(name)) {
    return "password";
  }
  if (/(Pattern|Template|Prompt)$/.test(name)) {
    return "template";
  }
  return { ruleChainId: "ruleChainId", queueName: "queueName", relationType: "relationType", polygonsDefinition: "json", schema: "json" }[name];
}

/** Makes a schema of a value, for classes of which the server gives none. */
export function derive(value: unknown, name = ""): Schema {
  const editor = editorOf(name);
  const hint = editor === undefined ? {} : { "x-editor": editor };
  if (MAPS.includes(name)) {
    return { type: "object", additionalProperties: { type: "string" } };
  }
  if (/TimeUnit$/.test(name)) {
    return { type: "string", enum: UNITS };
  }
  if (Array.isArray(value)) {
    return { type: "array", items: value.length === 0 ? { type: "string" } : derive(value[0]) };
  }
  if (isRecord(value)) {
    return { type: "object", properties: Object.fromEntries(Object.entries(value).map(([key, one]) => [key, derive(one, key)])) };
  }
  const choices = ENUMS[name];
  if (choices !== undefined && (value === null || choices.includes(String(value)))) {
    return { type: "string", enum: choices };
  }
  return { type: typeof value === "number" ? "number" : typeof value === "boolean" ? "boolean" : "string", ...hint };
}

/** `alarmDetailsBuildJs` → `Alarm details build JavaScript`. */
export function labelOf(name: string): string {
  return titleOf(name.replace(/([a-z\d])([A-Z])/g, "$1 $2").split(/[_ ]/));
}

/** Returns all that a form of a schema offers to choose from, in any of its variants. */
export function offeredBy(schema: unknown, field = ""): Choice[] {
  if (Array.isArray(schema)) {
    return schema.flatMap((one) => offeredBy(one, field));
  }
  if (!isRecord(schema)) {
    return [];
  }
  const { properties, default: _, ...rest } = schema;
  const inside = [...Object.entries(isRecord(properties) ? properties : {}), ...Object.values(rest).map((one) => [field, one] as const)];
  return [...(choicesOf(schema, field) ?? []), ...(variantsOf(schema, schema)?.variants ?? []), ...inside.flatMap(([name, one]) => offeredBy(one, name))];
}

/** Returns the texts that a form of a schema shows: labels, descriptions and choices, in any of its variants. Values that have no name of their own are no texts. */
export function textsOf(schema: unknown): Set<string> {
  const found = new Set(offeredBy(schema).filter(({ value, label }) => label !== value).map(({ label }) => label));
  const walk = (value: unknown): void => {
    if (Array.isArray(value)) {
      value.forEach(walk);
    } else if (isRecord(value)) {
      const { description, properties, ...rest } = value;
      if (typeof description === "string") {
        found.add(description);
      }
      for (const [name, one] of Object.entries(isRecord(properties) ? properties : {})) {
        const title = isRecord(one) ? one["title"] : undefined;
        found.add(typeof title === "string" ? title : labelOf(name));
        walk(one);
      }
      Object.entries(rest).forEach(([name, one]) => name !== "default" && walk(one));
    }
  };
  walk(schema);
  return found;
}
