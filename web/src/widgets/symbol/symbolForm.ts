// The form of a widget's symbol, made of what the symbol says about itself: where its values come from, what clicks do, its properties.

import { list, object, text, type Json } from "@/dashboard/json";
import { plainWords } from "@/dashboard/words";
import { valueAt, withValue, type FormChoice, type FormField, type FormValues } from "@/ui/form/values";
import { conditionOf } from "./conditions";
import { gets, sets } from "../control/forms";
import { actionFields } from "../form/actions";
import { colors, fonts, heading } from "../form/parts";
import { KNOWN_UNITS } from "../units";
import { merged } from "./symbol";

/** Under this the fields of a behaviour find its settings. */
export const OWN = "own";

export interface BehaviorPart {
  id: string;
  title: string;
  hint: string;
  fields: readonly FormField[];
  /** What the symbol begins with. */
  begin: Json;
}

const wordsAt = (stored: Json, name: string): string => plainWords(text(stored[name]) ?? "");
/** Hints that are but a key of ThingsBoard's translations tell nothing. */
const hintOf = (stored: Json): string => (/^\{i18n:[^}]*\}$/.test(text(stored["hint"]) ?? "") ? "" : wordsAt(stored, "hint"));

/** Returns the field of a value of some type. */
export function valueField(valueType: unknown, name: string, label: string): FormField {
  const type = valueType === "BOOLEAN" ? "boolean" : valueType === "DOUBLE" || valueType === "INTEGER" ? "number" : valueType === "JSON" ? "json" : "text";
  return { name, label, type };
}

function fieldsOf(behavior: Json): { fields: FormField[]; begin: unknown } | undefined {
  const { valueType } = behavior;
  switch (behavior["type"]) {
    case "value":
      return {
        fields: [...gets(OWN, valueType === "BOOLEAN" ? "state" : "value"), valueField(valueType, `${OWN}.defaultValue`, "Value without data")],
        begin: behavior["defaultGetValueSettings"],
      };
    case "action":
      return { fields: sets(OWN), begin: behavior["defaultSetValueSettings"] };
    case "widgetAction":
      return { fields: actionFields(OWN, { mayDoNothing: true, knowsStates: true }), begin: behavior["defaultWidgetActionSettings"] };
    default:
      return undefined;
  }
}

/** Returns the parts of the form that are about behaviours. */
export function behaviorParts(metadata: Json): BehaviorPart[] {
  return list(metadata["behavior"]).map(object).flatMap((behavior) => {
    const id = text(behavior["id"]);
    const made = fieldsOf(behavior);
    return id === undefined || made === undefined ? [] : [{ id, title: wordsAt(behavior, "name") || id, hint: hintOf(behavior), fields: made.fields, begin: object(made.begin) }];
  });
}

const TYPES: Readonly<Record<string, NonNullable<FormField["type"]>>> = {
  text: "text", icon: "text", password: "password", textarea: "long", markdown: "long", javascript: "code", json: "code", html: "code", css: "code",
  number: "number", switch: "boolean", color: "color", datetime: "time", units: "unit", image: "image",
};
const choicesIn = (property: Json): FormChoice[] => list(property["items"]).map(object).map(({ value, label }) => ({ value, label: plainWords(text(label) ?? String(value)) }));

const limit = (name: "least" | "most", value: unknown): Partial<FormField> => (typeof value === "number" ? { [name]: value } : {});

function fieldsAt(property: Json, type: string, path: string, label: string): FormField[] {
  switch (type) {
    case "fieldset":
      return [heading(label), ...propertyFields(list(property["properties"]), `${path}.`)];
    case "color_settings":
      return colors(path, label);
    case "font":
      return fonts(path, label);
    case "select":
      return [{ name: path, label, type: property["multiple"] === true ? "choices" : "choice", choicesOf: () => choicesIn(property) }];
    case "radios":
      return [{ name: path, label, type: "choice", choicesOf: () => choicesIn(property) }];
    case "number":
      return [{ name: path, label, type: "number", ...limit("least", property["min"]), ...limit("most", property["max"]) }];
    default:
      return [{ name: path, label, type: TYPES[type] ?? "json", ...(type === "units" ? { options: KNOWN_UNITS } : {}) }];
  }
}

function listField(property: Json, path: string, label: string): FormField {
  const type = text(property["arrayItemType"]) ?? "text";
  // Entries that are more than one value are rows; the others are a list of values, which JSON says best.
  return type === "fieldset"
    ? { name: path, label, type: "rows", fields: propertyFields(list(property["properties"])) }
    : type === "text"
      ? { name: path, label, type: "texts" }
      : { name: path, label, type: "json" };
}

/** Returns the fields of properties, those of a group below its heading. */
export function propertyFields(properties: readonly unknown[], before = ""): FormField[] {
  let group = "";
  return properties.map(object).flatMap((property) => {
    const id = text(property["id"]);
    const type = text(property["type"]) ?? "text";
    // Dots are steps of a path, which only old schemas mean.
    if (id === undefined || (id.includes(".") && property["nested"] !== true) || type === "htmlSection") {
      return [];
    }
    const path = `${before}${id}`;
    const label = [wordsAt(property, "name") || id, wordsAt(property, "subLabel")].filter((word) => word !== "").join(": ");
    const made = type === "array" ? [listField(property, path, label)] : fieldsAt(property, type, path, label);
    const hint = hintOf(property);
    const needed = text(property["disableOnProperty"]);
    const condition = conditionOf(property["condition"]);
    const next = wordsAt(property, "group");
    const begins = next !== "" && next !== group ? [heading(next)] : [];
    group = next;
    return [...begins, ...made.map((field): FormField => ({
      ...field,
      ...(hint === "" || field.help !== undefined || field.type === "heading" || made.length > 1 ? {} : { help: hint }),
      ...(property["required"] === true && made.length === 1 ? { required: true } : {}),
      ...(needed === undefined && condition === undefined
        ? {}
        : {
            when: (values: FormValues) =>
              (needed === undefined || valueAt(values, `${before}${needed}`) !== false) &&
              (condition?.((path) => valueAt(values, `${before}${path}`) ?? valueAt(values, path)) ?? true) &&
              (field.when?.(values) ?? true),
          }),
    }))];
  });
}

/** Returns what a property begins with. A group begins as its parts do: what it says of its whole counts for nothing, as in ThingsBoard. */
function beginningOf(property: Json): unknown {
  switch (property["type"]) {
    case "fieldset":
      return propertyBeginnings(list(property["properties"]));
    case "array":
      return list(property["default"]);
    default:
      return property["default"];
  }
}

/** Returns what properties begin with. */
export function propertyBeginnings(properties: readonly unknown[]): Json {
  return properties.map(object).reduce<Json>((all, property) => {
    const id = text(property["id"]);
    if (id === undefined || property["type"] === "htmlSection") {
      return all;
    }
    const begin = beginningOf(property);
    return property["nested"] === true ? withValue(all, id, begin) : { ...all, [id]: begin };
  }, {});
}

/** Returns settings of a widget with others for one behaviour. */
export function withBehavior(settings: Json, { id, begin }: BehaviorPart, update: (before: FormValues) => FormValues): Json {
  const whole = object(settings["scadaSymbolObjectSettings"]);
  const behavior = object(whole["behavior"]);
  const changed = update({ [OWN]: merged(begin, behavior[id] ?? {}) })[OWN];
  return { ...settings, scadaSymbolObjectSettings: { ...whole, behavior: { ...behavior, [id]: changed } } };
}

/** Returns settings of a widget with other properties. */
export function withProperties(settings: Json, begin: Json, update: (before: FormValues) => FormValues): Json {
  const whole = object(settings["scadaSymbolObjectSettings"]);
  return { ...settings, scadaSymbolObjectSettings: { ...whole, properties: update(object(merged(begin, whole["properties"] ?? {}))) } };
}
