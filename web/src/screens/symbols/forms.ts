// What is set of a symbol besides its code: what it is called, and its behaviours.

import { object, text } from "@/dashboard/json";
import { plainWords } from "@/dashboard/words";
import { settleAction } from "@/dashboard/edit/mobileAction";
import type { FormField, FormValues } from "@/ui/form/values";
import { gets, sets } from "@/widgets/control/forms";
import { actionFields } from "@/widgets/form/actions";
import { only } from "@/widgets/form/parts";
import { emptyValue } from "@/widgets/symbol/symbol";
import { valueField } from "@/widgets/symbol/symbolForm";
import { completeBehavior } from "./symbolFile";

export const GENERAL: readonly FormField[] = [
  { name: "title", label: "Title", required: true },
  { name: "description", label: "Description", type: "long" },
  { name: "searchTags", label: "Words to find it by", type: "texts" },
  { name: "widgetSizeX", label: "Columns of a new one", type: "number" },
  { name: "widgetSizeY", label: "Rows of a new one", type: "number" },
];

export type When = NonNullable<FormField["when"]>;
const is = (...types: string[]): When => ({ type }) => types.includes(String(type));

const VALUE_TYPES = [
  { value: "BOOLEAN", label: "Yes or no" },
  { value: "DOUBLE", label: "Number" },
  { value: "INTEGER", label: "Whole number" },
  { value: "STRING", label: "Text" },
  { value: "JSON", label: "JSON" },
];

const isValue = is("value");
const isYesNo: When = (values) => isValue(values) && values["valueType"] === "BOOLEAN";
const GET = "defaultGetValueSettings";
const ACTION = "defaultWidgetActionSettings";
const KINDS = [
  { value: "value", label: "A value that it shows" },
  { value: "action", label: "A value that it sets" },
  { value: "widgetAction", label: "An action of the widget" },
];
/** Groups that other rows are in. */
export const groups: NonNullable<FormField["optionsFrom"]> = ({ siblings }) => [...new Set((siblings ?? []).flatMap((row) => text(row["group"]) ?? []))].map((value) => ({ value, label: value }));

/** Brings a behaviour in line with its kind and the type of its value. */
export function settleBehavior(behavior: FormValues, before: FormValues): FormValues {
  const settled = behavior["type"] === "widgetAction" ? { ...behavior, [ACTION]: settleAction(object(behavior[ACTION]), object(before[ACTION])) } : behavior;
  if (behavior["type"] === before["type"] && behavior["valueType"] === before["valueType"]) {
    return settled;
  }
  const { type, valueType, [GET]: get, defaultSetValueSettings: set, ...rest } = completeBehavior(settled);
  const isOther = before["valueType"] !== undefined && behavior["valueType"] !== before["valueType"];
  const [read, data] = [object(get), object(object(set)["valueToData"])];
  const wanted = valueType === "BOOLEAN" ? "CONSTANT" : "VALUE";
  const fits = ["FUNCTION", "NONE", wanted].includes(text(data["type"]) ?? "");
  return {
    ...rest, type, ...(valueType === undefined ? {} : { valueType }),
    ...(get === undefined ? {} : { [GET]: isOther ? { ...read, defaultValue: emptyValue(text(valueType) ?? "") } : get }),
    ...(set === undefined ? {} : { defaultSetValueSettings: isOther && !fits ? { ...object(set), valueToData: { ...data, type: wanted } } : set }),
  };
}

const BEHAVIOR: readonly FormField[] = [
  { name: "id", label: "Id", required: true, help: "Code knows it by this." },
  { name: "name", label: "Name", required: true },
  { name: "hint", label: "Hint" },
  { name: "group", label: "Group", type: "suggest", optionsFrom: groups },
  { name: "type", label: "Kind", type: "select", required: true, initial: "value", options: KINDS },
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
  ...only(is("widgetAction"), actionFields(ACTION, { mayDoNothing: true })),
];

export const BEHAVIORS: readonly FormField[] = [
  {
    name: "behavior", label: "Behavior", type: "rows", fields: BEHAVIOR, settle: settleBehavior,
    rowTitle: (row) => ({ title: plainWords(text(row["name"]) ?? text(row["id"]) ?? ""), note: KINDS.find(({ value }) => value === row["type"])?.label ?? "" }),
    help: "Widgets set where each value comes from, and what each action does; this is what they begin with.",
  },
];
