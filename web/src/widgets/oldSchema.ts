// Settings of old types: a JSON Schema with the form that is made of it. They become the properties that types of today declare.

import { list, object, text, type Json } from "@/dashboard/json";

const isObject = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value);

/** Types of fields that old forms and properties call alike. */
const SAME = new Set(["number", "text", "password", "textarea", "color", "icon", "image", "javascript", "json", "html", "css", "markdown", "radios", "select"]);
/** Under this type a property is JSON: what a form can't express. */
const AS_JSON = "any";
/** A step of a path into a list. */
const ENTRY = "";

/** Reads a path such as `lines[].color` or `look['font']`. */
function pathOf(key: unknown): string[] {
  if (Array.isArray(key)) {
    return key.map(String);
  }
  const written = text(key) ?? "";
  return [...written.matchAll(/\[\s*(?:"([^"]*)"|'([^']*)'|\d*)\s*\]|([^.[\]]+)/g)].map(([, double, single, plain]) => double ?? single ?? plain ?? ENTRY);
}

function typeOf(schema: Json): string | undefined {
  const { type } = schema;
  return Array.isArray(type) ? type.map(String).find((one) => one !== "null") : (text(type) ?? (isObject(schema["properties"]) ? "object" : undefined));
}

function schemaAt(schema: Json, path: readonly string[]): Json {
  return path.reduce<Json>((at, step) => object(step === ENTRY ? at["items"] : object(at["properties"])[step]), schema);
}

/** Returns what a field is drawn as. */
function drawnAs(entry: Json, schema: Json): string | undefined {
  const own = text(entry["type"]);
  if (own !== undefined) {
    return own;
  }
  switch (typeOf(schema)) {
    case "string":
      return Array.isArray(schema["enum"]) ? "select" : "text";
    case "number":
    case "integer":
      return "number";
    case "boolean":
      return "checkbox";
    case "date":
      return "date";
    case "object":
      return "fieldset";
    case "array":
      return Array.isArray(object(schema["items"])["enum"]) ? "checkboxes" : "array";
    default:
      return undefined;
  }
}

/** Returns the choices of a field: its own, those that the schema names, or its plain values. */
function choicesOf(entry: Json, schema: Json): Json[] {
  const titles = entry["titleMap"] ?? schema["enumNames"];
  const values = list(schema["enum"] ?? object(schema["items"])["enum"]);
  if (Array.isArray(entry["items"])) {
    return list(entry["items"]).map(object).map(({ value, label }) => ({ value, label }));
  }
  if (Array.isArray(titles) && titles.every(isObject)) {
    return titles.map(({ value, name }) => ({ value, label: name }));
  }
  return isObject(titles) && values.length === 0
    ? Object.entries(titles).map(([value, label]) => ({ value, label }))
    : values.map((value, n) => ({ value, label: (isObject(titles) ? titles[String(value)] : list(titles)[n]) ?? String(value) }));
}

/** The fields below a field: those that its form names, or all that its schema knows. */
function within(entry: Json, root: Json, schema: Json, path: readonly string[]): Json[] {
  const named = list(entry["items"]);
  const all = named.length > 0 ? named : Object.keys(object(schema["properties"])).map((name) => ({ key: [...path, name] }));
  return all.flatMap((one) => propertyOf(one, root, path));
}

function listOf(entry: Json, root: Json, schema: Json, path: readonly string[]): Json {
  const item = object(schema["items"]);
  const kind = typeOf(item);
  if (kind === "object") {
    const properties = within(entry, root, item, [...path, ENTRY]);
    return properties.length === 0 ? { type: AS_JSON } : { type: "array", arrayItemType: "fieldset", properties };
  }
  return kind === "string" ? { type: "array", arrayItemType: "text" } : { type: AS_JSON };
}

/** Returns what a property of a type has besides its name. */
function kindOf(entry: Json, root: Json, schema: Json, path: readonly string[]): Json {
  const type = drawnAs(entry, schema) ?? AS_JSON;
  switch (type) {
    case "checkbox":
      return { type: "switch" };
    case "rc-select":
      return { type: "select", items: choicesOf(entry, schema), multiple: entry["multiple"] === true };
    case "select":
    case "radios":
      return { type, items: choicesOf(entry, schema) };
    case "checkboxes":
      return { type: "select", items: choicesOf(entry, schema), multiple: true };
    case "number":
      return { type, min: schema["minimum"], max: schema["maximum"] };
    case "date":
      return { type: "datetime" };
    case "fieldset": {
      const properties = within(entry, root, schema, path);
      return properties.length === 0 ? { type: AS_JSON } : { type, properties };
    }
    case "array":
      return listOf(entry, root, schema, path);
    default:
      return { type: SAME.has(type) ? type : AS_JSON };
  }
}

/** Returns an entry of a form as properties; `above` is the path of what it stands in. */
function propertyOf(stored: unknown, root: Json, above: readonly string[]): Json[] {
  const entry: Json = typeof stored === "string" ? { key: stored } : object(stored);
  const path = pathOf(entry["key"]);
  if (path.length === 0) {
    // Words, and frames around fields that stand for themselves.
    const parts = [...list(entry["items"]), ...list(entry["tabs"]).flatMap((tab) => list(object(tab)["items"]))];
    const group = text(entry["title"]);
    return parts.flatMap((one) => propertyOf(one, root, above)).map((property) => ({ ...property, ...(group === undefined ? {} : { group: property["group"] ?? group }) }));
  }
  if (entry["type"] === "help") {
    return [];
  }
  const schema = schemaAt(root, path);
  const steps = path.slice(above.length);
  const parent = schemaAt(root, path.slice(0, -1));
  const title = text(entry["title"]) ?? text(schema["title"]);
  const hint = text(entry["description"]) ?? text(schema["description"]);
  return steps.length === 0 || steps.includes(ENTRY)
    ? []
    : [
        {
          id: steps.join("."),
          ...(steps.length > 1 ? { nested: true } : {}),
          name: title ?? steps.at(-1),
          ...(hint === undefined ? {} : { hint }),
          default: entry["default"] ?? schema["default"],
          required: entry["required"] === true || schema["required"] === true || list(parent["required"]).includes(path.at(-1)),
          ...(text(entry["condition"]) === undefined ? {} : { condition: entry["condition"] }),
          ...kindOf(entry, root, schema, path),
        },
      ];
}

/** Returns a form with all in the place of its star that it doesn't name itself. */
function withRest(form: readonly unknown[], schema: Json): unknown[] {
  const named = new Set(form.map((one) => pathOf(typeof one === "string" ? one : object(one)["key"])[0]));
  return form.flatMap((one) => (one === "*" ? Object.keys(object(schema["properties"])).filter((name) => !named.has(name)).map((name) => ({ key: [name] })) : [one]));
}

/** Reads what an old type declares of its settings, as text or not; nothing of what can't be read. */
export function schemaProperties(stored: unknown): Json[] {
  let read = stored;
  if (typeof stored === "string") {
    try {
      read = JSON.parse(stored) as unknown;
    } catch {
      return [];
    }
  }
  const { schema, form, groupInfoes } = object(read);
  if (!isObject(schema)) {
    return [];
  }
  const whole = Array.isArray(form) && form.length > 0 ? (form as unknown[]) : ["*"];
  const groups = list(groupInfoes).map(object);
  return groups.length === 0
    ? withRest(whole, schema).flatMap((one) => propertyOf(one, schema, []))
    : groups.flatMap(({ formIndex, GroupTitle: group }) => withRest(list(whole[Number(formIndex)]), schema).flatMap((one) => propertyOf(one, schema, [])).map((property) => ({ ...property, group })));
}
