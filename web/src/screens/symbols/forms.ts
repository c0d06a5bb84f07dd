// What is set of a symbol besides its code: what it is called, its behaviours, its properties.

import { gets, sets } from "@/widgets/control/forms";
import type { FormField, FormValues } from "@/ui/form/values";

export const GENERAL: readonly FormField[] = [
  { name: "title", label: "Title", required: true },
  { name: "description", label: "Description", type: "long" },
  { name: "searchTags", label: "Words to find it by", type: "texts" },
  { name: "widgetSizeX", label: "Columns of a new one", type: "number" },
  { name: "widgetSizeY", label: "Rows of a new one", type: "number" },
];

type When = NonNullable<FormField["when"]>;
const is = (...types: string[]): When => ({ type }) => types.includes(String(type));
/** Leaves fields to those of their own condition for which this one holds, too. */
const only = (wanted: When, fields: readonly FormField[]): FormField[] => fields.map((field) => ({ ...field, when: (values) => wanted(values) && (field.when?.(values) ?? true) }));

const VALUE_TYPES = [
  { value: "BOOLEAN", label: "Yes or no" },
  { value: "DOUBLE", label: "Number" },
  { value: "INTEGER", label: "Whole number" },
  { value: "STRING", label: "Text" },
  { value: "JSON", label: "JSON" },
];

/** Returns the field of a value of some type. */
export function valueField(valueType: unknown, name: string, label: string): FormField {
  const type = valueType === "BOOLEAN" ? "boolean" : valueType === "DOUBLE" || valueType === "INTEGER" ? "number" : valueType === "JSON" ? "json" : "text";
  return { name, label, type };
}

const isValue = is("value");
const isYesNo: When = (values) => isValue(values) && values["valueType"] === "BOOLEAN";
const GET = "defaultGetValueSettings";

const BEHAVIOR: readonly FormField[] = [
  { name: "id", label: "Id", required: true, help: "Code knows it by this." },
  { name: "name", label: "Name", required: true },
  { name: "hint", label: "Hint" },
  { name: "group", label: "Group" },
  {
    name: "type", label: "Kind", type: "select", required: true, initial: "value",
    options: [{ value: "value", label: "A value that it shows" }, { value: "action", label: "A value that it sets" }, { value: "widgetAction", label: "An action of the widget" }],
  },
  { name: "valueType", label: "Type of the value", type: "select", required: true, initial: "BOOLEAN", options: VALUE_TYPES, when: is("value", "action") },
  ...only(isYesNo, [
    { name: "trueLabel", label: "Label of yes" },
    { name: "falseLabel", label: "Label of no" },
    { name: "stateLabel", label: "Label of the state" },
  ]),
  ...VALUE_TYPES.map(({ value }): FormField => ({ ...valueField(value, `${GET}.defaultValue`, "Value without data"), when: (values) => isValue(values) && values["valueType"] === value })),
  ...only(isYesNo, gets(GET, "state")),
  ...only((values) => isValue(values) && !isYesNo(values), gets(GET, "value")),
  ...only(is("action"), sets("defaultSetValueSettings")),
  { name: "defaultWidgetActionSettings", label: "Action to begin with (JSON)", type: "json", when: is("widgetAction") },
];

export const BEHAVIORS: readonly FormField[] = [{ name: "behavior", label: "Behavior", type: "rows", fields: BEHAVIOR, help: "Widgets set where each value comes from, and what each action does; this is what they begin with." }];

const PROPERTY_TYPES = [
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
/** Kinds of properties by the field that their default has. */
const DEFAULTS: readonly { of: string[]; type: NonNullable<FormField["type"]> }[] = [
  { of: ["text", "units", "icon", "select", "radios", "image", "password"], type: "text" },
  { of: ["textarea", "html", "css", "markdown", "javascript"], type: "long" },
  { of: ["number", "datetime"], type: "number" },
  { of: ["switch"], type: "boolean" },
  { of: ["color"], type: "color" },
  { of: ["color_settings", "font", "json", "array"], type: "json" },
];
const isObjectUnit = ({ default: value }: FormValues): boolean => typeof value === "object" && value !== null;

const PROPERTY: readonly FormField[] = [
  { name: "id", label: "Id", required: true, help: "Code knows it by this." },
  { name: "name", label: "Name", required: true },
  { name: "hint", label: "Hint" },
  { name: "group", label: "Group" },
  { name: "type", label: "Kind", type: "select", required: true, initial: "text", options: PROPERTY_TYPES },
  ...DEFAULTS.map(({ of, type }): FormField => ({ name: "default", label: "To begin with", type, when: (values) => is(...of)(values) && (type !== "text" || !isObjectUnit(values)) })),
  { name: "default", label: "To begin with", type: "json", when: (values) => is("units")(values) && isObjectUnit(values) },
  { name: "required", label: "Needed", type: "boolean" },
  ...only(is("number"), [
    { name: "min", label: "Least value", type: "number" },
    { name: "max", label: "Greatest value", type: "number" },
    { name: "step", label: "Step", type: "number" },
  ]),
  { name: "items", label: "Choices", type: "rows", when: is("select", "radios"), fields: [{ name: "value", label: "Value" }, { name: "label", label: "Label" }] },
  { name: "multiple", label: "Several can be chosen", type: "boolean", when: is("select") },
  { name: "allowEmptyOption", label: "None can be chosen", type: "boolean", when: is("select") },
  { name: "rows", label: "Rows", type: "number", when: is("textarea") },
  { name: "supportsUnitConversion", label: "Values are converted to other units", type: "boolean", when: is("units") },
  { name: "arrayItemName", label: "Name of an entry", when: is("array") },
  { name: "arrayItemType", label: "Kind of an entry", type: "select", options: PROPERTY_TYPES.filter(({ value }) => value !== "array"), when: is("array") },
  { name: "properties", label: "Properties within (JSON)", type: "json", when: (values) => is("fieldset")(values) || (is("array")(values) && values["arrayItemType"] === "fieldset") },
  { name: "htmlContent", label: "HTML", type: "long", when: is("htmlSection") },
  { name: "subLabel", label: "Label beside the field" },
  { name: "fieldSuffix", label: "Words behind the field" },
  { name: "divider", label: "A line before it", type: "boolean" },
  { name: "disableOnProperty", label: "Only while this property is on", help: "Id of a property that is yes or no." },
  { name: "condition", label: "Only if this function says so", type: "code" },
];

export const PROPERTIES: readonly FormField[] = [{ name: "properties", label: "Properties", type: "rows", fields: PROPERTY, help: "Widgets set these; this is what they begin with." }];
