// Fields that several layers of a map share: colours, texts, and where the things of a layer come from.

import { settleAction } from "@/dashboard/edit/mobileAction";
import type { FormAround } from "@/ui/form/around";
import { valueAt, type FormField, type FormValues } from "@/ui/form/values";
import { ACTION_TYPES, actionFields } from "../../form/actions";
import { heading, only, ranges } from "../../form/parts";

type When = NonNullable<FormField["when"]>;

/** Whether a value at a path is one of some; `otherwise` holds where there is none. */
export const isAt = (path: string, otherwise: string, ...wanted: string[]): When => (values) => wanted.includes(String(valueAt(values, path) ?? otherwise));
export const isOff = (path: string): When => (values) => valueAt(values, path) === false;
export const isOn = (path: string): When => (values) => valueAt(values, path) === true;

export const FUNCTION_OF_THINGS = "function (data, dsData)";
/** Kinds of keys that have latest values. */
export const LATEST_KEYS = ["attribute", "timeseries", "entityField"];

const KINDS = [
  { value: "constant", label: "Always the same" },
  { value: "range", label: "By ranges of the value" },
];
const KINDS_WITH_FUNCTION = [...KINDS, { value: "function", label: "What a function makes of it" }];

/** Fields of a colour of a layer; `of` are the kinds of keys whose ranges it can follow. */
export function layerColors(path: string, label: string, { of = LATEST_KEYS, byFunction = true }: { of?: readonly string[]; byFunction?: boolean } = {}): FormField[] {
  const is = (...kinds: string[]): When => isAt(`${path}.type`, "constant", ...kinds);
  return [
    heading(label),
    { name: `${path}.type`, label: "Comes from", type: "select", required: true, otherwise: "constant", options: byFunction ? KINDS_WITH_FUNCTION : KINDS },
    { name: `${path}.color`, label: "Color", type: "color" },
    { name: `${path}.rangeKey`, label: "Key of the value", type: "own", drawnBy: "layerKey", options: of, when: is("range") },
    ranges(`${path}.range`, "Ranges with their colors", is("range")),
    ...(byFunction ? [{ name: `${path}.colorFunction`, label: "Function", type: "code", help: FUNCTION_OF_THINGS, when: is("function") } as const] : []),
  ];
}

const WRITTEN_BY = [
  { value: "pattern", label: "A pattern" },
  { value: "function", label: "A function" },
];
export const TRIGGERS = [
  { value: "click", label: "on a click" },
  { value: "hover", label: "under the pointer" },
];

/** Fields of a text that things of a layer have. */
function written(path: string, shown: FormField, usual: boolean): FormField[] {
  const isShown: When = usual ? (values) => !isOff(`${path}.show`)(values) : isOn(`${path}.show`);
  return [
    { ...shown, name: `${path}.show`, type: "boolean", otherwise: usual },
    ...only(isShown, [
      { name: `${path}.type`, label: "Written by", type: "select", required: true, otherwise: "pattern", options: WRITTEN_BY },
      { name: `${path}.pattern`, label: "Pattern", type: "long", help: "With ${entityName} and ${key} for values, as in ${temperature:1}.", when: isAt(`${path}.type`, "pattern", "pattern") },
      { name: `${path}.patternFunction`, label: "Function", type: "code", help: FUNCTION_OF_THINGS, when: isAt(`${path}.type`, "pattern", "function") },
    ]),
  ];
}

/** Fields of the words beside each thing; points usually have some. */
export function labelFields(usual: boolean): FormField[] {
  return [heading("Label"), ...written("label", { name: "", label: "Show a label" }, usual)];
}

/** Fields of what opens above a thing. */
export function tooltipFields(path: string, title: string, usual: boolean, more: readonly FormField[] = []): FormField[] {
  const isShown: When = usual ? (values) => !isOff(`${path}.show`)(values) : isOn(`${path}.show`);
  return [
    heading(title),
    ...written(path, { name: "", label: "Show a tooltip" }, usual),
    ...only(isShown, [
      { name: `${path}.trigger`, label: "It opens", type: "select", required: true, otherwise: "click", options: TRIGGERS },
      { name: `${path}.autoclose`, label: "Closes by itself", type: "boolean", otherwise: true },
      ...more,
    ]),
  ];
}

/** Where the tooltip of a marker stands. */
export const TOOLTIP_PLACE: readonly FormField[] = [
  { name: "tooltip.offsetX", label: "Tooltip: to the right, in widths of the marker", type: "number" },
  { name: "tooltip.offsetY", label: "Tooltip: down, in heights of the marker", type: "number" },
];

/** Actions that links of a tooltip name. */
export const TAG_ACTIONS: FormField = {
  name: "tooltip.tagActions", label: "Actions of its links", type: "rows", settle: settleAction,
  help: "A link in the text names one of them: <link-act name='more'>More</link-act>",
  rowTitle: ({ name, type }) => ({ title: String(name ?? ""), note: ACTION_TYPES.find(({ value }) => value === type)?.label ?? String(type ?? "") }),
  fields: [{ name: "name", label: "Name", required: true }, ...actionFields("", { knowsStates: true })],
};

const SOURCE_KINDS = [
  { value: "entity", label: "Entities of an alias" },
  { value: "device", label: "One device" },
];
const MADE_UP = { value: "function", label: "Values made up by functions" };
const is = (...kinds: string[]): When => isAt("dsType", "entity", ...kinds);

/** Fields of whose data something shows. */
export function sourceFields({ madeUp }: { madeUp: boolean }): FormField[] {
  return [
    { name: "dsType", label: "Kind of source", type: "select", required: true, otherwise: "entity", options: madeUp ? [...SOURCE_KINDS, MADE_UP] : SOURCE_KINDS },
    { name: "dsEntityAliasId", label: "Data of", type: "own", drawnBy: "layerAlias", when: is("entity") },
    { name: "dsDeviceId", label: "Device", type: "entity", list: "/api/tenant/devices", pick: "id", one: "/api/device/", when: is("device") },
    { name: "dsFilterId", label: "Filter", type: "select", optionsFrom: ({ options }) => options?.["filters"] ?? [], when: is("entity", "device") },
    ...(madeUp ? [{ name: "dsLabel", label: "Name of the source", when: is("function") }] : []),
  ];
}

/** What a layer or source is called in its list: whose data it has. */
export function titleOf(source: FormValues, { options }: FormAround): { title: string; note: string } {
  const kind = source["dsType"] ?? "entity";
  const alias = options?.["aliases"]?.find(({ value }) => value === source["dsEntityAliasId"])?.label;
  const label = typeof source["dsLabel"] === "string" ? source["dsLabel"] : "";
  return { title: (kind === "entity" ? alias : undefined) ?? label, note: [...SOURCE_KINDS, MADE_UP].find(({ value }) => value === kind)?.label ?? "" };
}
