// The properties of a symbol: what can be set of it, how that is asked for, and what it begins with.

import { list, object, text } from "@/dashboard/json";
import { plainWords } from "@/dashboard/words";
import type { FormChoice, FormField, FormValues } from "@/ui/form/values";
import { colors, fonts, only } from "@/widgets/form/parts";
import { KNOWN_UNITS } from "@/widgets/units";
import { groups, type When } from "./forms";

const TYPES = [
  { value: "text", label: "Text" },
  { value: "textarea", label: "Long text" },
  { value: "number", label: "Number" },
  { value: "switch", label: "Yes or no" },
  { value: "select", label: "Choice" },
  { value: "radios", label: "Choice, all seen" },
  { value: "color", label: "Color" },
  { value: "color_settings", label: "Color by the value" },
  { value: "font", label: "Font" },
  { value: "units", label: "Unit" },
  { value: "icon", label: "Icon" },
  { value: "datetime", label: "Date and time" },
  { value: "image", label: "Picture" },
  { value: "password", label: "Password" },
  { value: "javascript", label: "JavaScript" },
  { value: "json", label: "JSON" },
  { value: "html", label: "HTML" },
  { value: "css", label: "CSS" },
  { value: "markdown", label: "Markdown" },
  { value: "fieldset", label: "Group of properties" },
  { value: "array", label: "List" },
  { value: "htmlSection", label: "Section of HTML" },
];
const DIRECTIONS = [
  { value: "row", label: "Beside each other" },
  { value: "column", label: "Below each other" },
];
const MOMENTS = [
  { value: "date", label: "Date" },
  { value: "time", label: "Time" },
  { value: "datetime", label: "Date and time" },
];
/** Classes that ThingsBoard knows for the row of a property, and for its field. */
const ROW_CLASSES = ["column", "column-xs", "column-lt-md", "align-start", "no-border", "no-gap", "no-padding", "same-padding"];
const FIELD_CLASSES = ["medium-width", "flex", "flex-xs", "flex-lt-md"];

const BEGIN = "To begin with";
const FONT = { size: 12, sizeUnit: "px", family: "Roboto", weight: "normal", style: "normal", lineHeight: "1" };
/** What properties of each kind begin with, as in ThingsBoard; the others with nothing. */
const BEGINNINGS: Readonly<Record<string, unknown>> = {
  text: "", textarea: "", password: "", javascript: "", json: "", html: "", css: "", markdown: "", units: "",
  number: 0, switch: false, color: "#000", color_settings: { type: "constant", color: "#000" }, font: FONT, icon: "star",
};
/** What is stored for some kinds alone. */
const OWN: Readonly<Record<string, readonly string[]>> = {
  number: ["min", "max", "step"],
  textarea: ["rows"],
  select: ["multiple", "allowEmptyOption", "minItems", "maxItems", "items"],
  radios: ["direction", "items"],
  datetime: ["allowClear", "dateTimeType"],
  javascript: ["helpId"],
  markdown: ["helpId"],
  fieldset: ["properties"],
  htmlSection: ["htmlClassList", "htmlContent"],
  units: ["supportsUnitConversion"],
};
const ALL_OWN = new Set(Object.values(OWN).flat());
const OF_LISTS = ["arrayItemName", "arrayItemType"];

/** The kind that the value of a property has, or each value of a list. */
function kindOf({ type, arrayItemType }: FormValues): string {
  return text(type === "array" ? arrayItemType : type) ?? "";
}

/** Brings a property in line with its kind: another one begins with another value and has other fields. */
export function settleProperty(property: FormValues, before: FormValues): FormValues {
  const kind = kindOf(property);
  const isList = property["type"] === "array";
  if (kind === kindOf(before) && isList === (before["type"] === "array")) {
    return property;
  }
  const kept = Object.entries(property).filter(([name]) => name !== "default" && (!ALL_OWN.has(name) || (OWN[kind] ?? []).includes(name)) && (isList || !OF_LISTS.includes(name)));
  return { ...Object.fromEntries(kept), ...(kind in BEGINNINGS ? { default: BEGINNINGS[kind] } : {}), ...(kind === "datetime" ? { dateTimeType: property["dateTimeType"] ?? "datetime" } : {}), ...(kind === "radios" ? { direction: property["direction"] ?? "column" } : {}) };
}

const of = (...kinds: string[]): When => (values) => kinds.includes(kindOf(values));
const isList: When = ({ type }) => type === "array";
const isOn = (name: string): When => (values) => values[name] === true;
const both = (...conditions: When[]): When => (values) => conditions.every((one) => one(values));
const not = (condition: When): When => (values) => !condition(values);
const isObject: When = ({ default: begin }) => typeof begin === "object" && begin !== null;
const hasField = not(of("fieldset", "array", "htmlSection"));
const begin = (type: NonNullable<FormField["type"]>, when: When, more: Partial<FormField> = {}): FormField => ({ name: "default", label: BEGIN, type, when, ...more });
const choicesOf = ({ items }: FormValues): FormChoice[] => list(items).map(object).map(({ value, label }) => ({ value, label: text(label) ?? String(value) }));
/** Properties beside this one that are on or off. */
const switches: NonNullable<FormField["optionsFrom"]> = ({ siblings }) => (siblings ?? []).flatMap((row) => (row["type"] === "switch" && text(row["id"]) !== undefined ? [{ value: String(row["id"]), label: text(row["name"]) ?? String(row["id"]) }] : []));

const DEFAULTS: readonly FormField[] = [
  begin("text", of("text", "icon", "password")),
  begin("long", of("textarea", "markdown")),
  begin("code", both(of("javascript", "html", "css", "json"), not(isObject))),
  begin("json", both(of("json"), isObject)),
  begin("number", of("number")),
  begin("boolean", of("switch")),
  begin("color", of("color")),
  begin("time", of("datetime")),
  begin("unit", of("units"), { options: KNOWN_UNITS }),
  begin("image", both(of("image"), not(isList))),
  begin("choice", both(of("select"), not(isOn("multiple"))), { choicesOf }),
  begin("choices", both(of("select"), isOn("multiple")), { choicesOf }),
  begin("choice", of("radios"), { choicesOf }),
  ...only(of("color_settings"), colors("default", BEGIN)),
  ...only(of("font"), fonts("default", BEGIN)),
];

const PROPERTY: readonly FormField[] = [
  { name: "id", label: "Id", required: true, help: "Code knows it by this." },
  { name: "name", label: "Name", required: true },
  { name: "hint", label: "Hint" },
  { name: "group", label: "Group", type: "suggest", optionsFrom: groups },
  { name: "type", label: "Kind", type: "select", required: true, initial: "text", options: TYPES },
  { name: "arrayItemType", label: "Kind of an entry", type: "select", required: true, options: TYPES.filter(({ value }) => value !== "array" && value !== "htmlSection"), when: isList },
  { name: "arrayItemName", label: "Name of an entry", when: isList },
  ...only(of("select", "radios"), [
    {
      name: "items", label: "Choices", type: "rows",
      fields: [{ name: "value", label: "Value", type: "value", initial: "" }, { name: "label", label: "Label" }],
    },
    { name: "multiple", label: "Several can be chosen", type: "boolean", when: of("select") },
    { name: "allowEmptyOption", label: "None can be chosen", type: "boolean", when: both(of("select"), not(isOn("multiple"))) },
    { name: "minItems", label: "At least so many", type: "number", when: both(of("select"), isOn("multiple")) },
    { name: "maxItems", label: "At most so many", type: "number", when: both(of("select"), isOn("multiple")) },
    { name: "direction", label: "Choices stand", type: "select", options: DIRECTIONS, when: of("radios") },
  ]),
  ...only(of("number"), [
    { name: "min", label: "Least value", type: "number" },
    { name: "max", label: "Greatest value", type: "number" },
    { name: "step", label: "Step", type: "number" },
  ]),
  ...only(of("datetime"), [
    { name: "dateTimeType", label: "What is asked for", type: "select", required: true, options: MOMENTS },
    { name: "allowClear", label: "It can be cleared", type: "boolean" },
  ]),
  { name: "rows", label: "Rows", type: "number", when: of("textarea") },
  { name: "supportsUnitConversion", label: "Values are converted to other units", type: "boolean", when: of("units") },
  ...DEFAULTS,
  // The list that it stands in, which is there by the time that somebody looks.
  { name: "properties", label: "Properties within", type: "rows", when: of("fieldset"), settle: settleProperty, rowTitle, get fields() { return PROPERTY; } },
  { name: "htmlContent", label: "HTML", type: "code", when: of("htmlSection") },
  { name: "htmlClassList", label: "Classes of the section", type: "texts", when: of("htmlSection") },
  { name: "helpId", label: "Id of its help", when: of("javascript", "markdown") },
  { name: "required", label: "Needed", type: "boolean", when: not(of("htmlSection")) },
  ...only(hasField, [
    { name: "subLabel", label: "Label beside the field" },
    { name: "fieldSuffix", label: "Words behind the field" },
    { name: "divider", label: "A line before it", type: "boolean" },
    { name: "disableOnProperty", label: "Only while this property is on", type: "suggest", optionsFrom: switches, help: "Id of a property that is yes or no." },
    { name: "rowClass", label: "Classes of its row", type: "words", options: ROW_CLASSES },
    { name: "fieldClass", label: "Classes of its field", type: "words", options: FIELD_CLASSES },
  ]),
  { name: "condition", label: "Only if this function says so", type: "code", help: "function (property, model)" },
];

function rowTitle(row: FormValues): { title: string; note: string } {
  const title = plainWords(text(row["name"]) ?? text(row["id"]) ?? "");
  const beside = plainWords(text(row["subLabel"]) ?? "");
  return { title: beside === "" ? title : `${title}: ${beside}`, note: TYPES.find(({ value }) => value === row["type"])?.label ?? "" };
}

export const PROPERTIES: readonly FormField[] = [{ name: "properties", label: "Properties", type: "rows", fields: PROPERTY, settle: settleProperty, rowTitle, help: "Widgets set these; this is what they begin with." }];
