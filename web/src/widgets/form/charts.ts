// Forms for charts over time and for each of their keys.

import type { FormAround } from "@/ui/form/around";
import { toRows, valueAt, type FormField, type FormOption, type FormValues } from "@/ui/form/values";
import type { WidgetForm } from "../forms";
import { heading, ranges, usuallyOn } from "./parts";

const SIDES = [
  { value: "top", label: "Above" },
  { value: "bottom", label: "Below the chart" },
  { value: "left", label: "on the left" },
  { value: "right", label: "on the right" },
];
export const PERIODS: readonly FormOption[] = [
  { value: "previousInterval", label: "The time before" },
  { value: "days", label: "A day before" },
  { value: "weeks", label: "A week before" },
  { value: "months", label: "A month before" },
  { value: "years", label: "A year before" },
  { value: "customInterval", label: "Another time before" },
];
const STEPS = [
  { value: "start", label: "At the point before" },
  { value: "middle", label: "In the middle" },
  { value: "end", label: "At the next point" },
];
const GAPS = [
  { value: "connect", label: "Connected" },
  { value: "usual", label: "Open where they are missing for longer than usual" },
  { value: "after", label: "Open after a time without a value" },
];
const FILLS = [
  { value: "none", label: "Not filled" },
  { value: "opacity", label: "Evenly" },
  { value: "gradient", label: "With a gradient" },
];

const hasConfig = (values: FormValues): boolean => typeof values["legendConfig"] === "object" && values["legendConfig"] !== null;
const legend = (values: FormValues): boolean => values["showLegend"] !== false;
/** A number that may come from elsewhere: a plain one, or an object that says where from. */
const COMES_FROM = [
  { value: "constant", label: "A fixed value" },
  { value: "latestKey", label: "A latest value of the source" },
  { value: "entity", label: "A value of another entity" },
];
const VALUE_KINDS = [
  { value: "attribute", label: "Attribute" },
  { value: "timeseries", label: "Telemetry" },
];
const aliases = ({ names }: FormAround): FormOption[] => (names["aliases"] ?? []).map((value) => ({ value, label: value }));

/** Fields of where a number comes from, below a path. */
function valueFields(path: string, label: string, isIt: (values: FormValues) => boolean = () => true): FormField[] {
  const at = (name: string): string => (path === "" ? name : `${path}.${name}`);
  const is = (source: string) => (values: FormValues): boolean => isIt(values) && (valueAt(values, at("type")) ?? "constant") === source;
  // Rows are new, so that the kind can be stored; in an object that isn't there yet it would say that there is one.
  const kind = path === "" ? { initial: "attribute", otherwise: "attribute" } : { otherwise: "attribute" };
  return [
    { name: at("type"), label: `${label} comes from`, type: "select", options: COMES_FROM, otherwise: "constant", when: isIt },
    { name: at("value"), label, type: "number", when: is("constant") },
    { name: at("latestKeyType"), label: "Kind", type: "select", options: VALUE_KINDS, ...kind, when: is("latestKey") },
    { name: at("latestKey"), label: "Key", when: is("latestKey") },
    { name: at("entityAlias"), label: "Entity", type: "select", optionsFrom: aliases, when: is("entity") },
    { name: at("entityKeyType"), label: "Kind", type: "select", options: VALUE_KINDS, ...kind, when: is("entity") },
    { name: at("entityKey"), label: "Key", when: is("entity") },
  ];
}

/** A limit of an axis: a plain number, or an object that says where it comes from. */
function limit(name: string, label: string): FormField[] {
  const isObject = (values: FormValues): boolean => typeof valueAt(values, name) === "object" && valueAt(values, name) !== null;
  const [from, ...others] = valueFields(name, label, isObject);
  return [...(from === undefined ? [] : [{ ...from, when: () => true }]), { name, label, type: "number", when: (values) => !isObject(values) }, ...others];
}

/** The axes of a chart, by what they are called. */
const axes = ({ values }: FormAround): FormOption[] => {
  const stored = toRows(values["yAxes"], "id");
  return (stored.length === 0 ? [{ id: "default" }] : stored).map((axis) => {
    const { id, label } = axis as { id: string; label?: unknown };
    return { value: id, label: typeof label === "string" && label !== "" ? label : id };
  });
};

const LEGEND: FormField[] = [
  heading("Legend"),
  usuallyOn("showLegend", "Show the legend"),
  { name: "legendConfig.position", label: "It stands", type: "select", options: SIDES, otherwise: "top", when: legend },
  { name: "legendConfig.showMin", label: "With the least value", type: "boolean", when: legend },
  { name: "legendConfig.showMax", label: "With the greatest value", type: "boolean", when: legend },
  // Where nothing is said of the legend it has the average.
  { name: "legendConfig.showAvg", label: "With the average", type: "boolean", otherwise: true, when: (values) => legend(values) && !hasConfig(values) },
  { name: "legendConfig.showAvg", label: "With the average", type: "boolean", when: (values) => legend(values) && hasConfig(values) },
  { name: "legendConfig.showTotal", label: "With the total", type: "boolean", when: legend },
  { name: "legendConfig.showLatest", label: "With the latest value", type: "boolean", when: legend },
];

const AXES: FormField = {
  name: "yAxes", label: "Axes of values", type: "rows", keyed: "id", keyPrefix: "axis", begin: [{ id: "default" }],
  fields: [
    { name: "label", label: "Label" },
    { name: "units", label: "Unit", when: ({ units }) => typeof units !== "object" || units === null },
    { name: "decimals", label: "Decimals", type: "number" },
    { name: "position", label: "It stands", type: "select", options: SIDES.slice(2), otherwise: "left" },
    ...limit("min", "Least value"),
    ...limit("max", "Greatest value"),
    { name: "order", label: "Place among the axes", type: "number" },
    usuallyOn("show", "Draw the axis"),
  ],
};

const AXIS_CHOICE: FormField = { name: "yAxisId", label: "Axis of values", type: "select", otherwise: "default", optionsFrom: axes };
const THRESHOLDS: FormField = {
  name: "thresholds", label: "Thresholds", type: "rows",
  fields: [
    ...valueFields("", "Value"),
    { ...AXIS_CHOICE, initial: "default" },
    { name: "units", label: "Unit", when: ({ units }) => typeof units !== "object" || units === null },
    { name: "lineColor", label: "Color", type: "color" },
    usuallyOn("showLabel", "Write its value"),
  ],
};
const OVER: FormField[] = [
  { name: "showAlarms", label: "Alarms of the entities over the lines", type: "boolean" },
  { name: "showBand", label: "A band from the least to the greatest value", type: "boolean", help: "Of averages: what each interval holds besides." },
];

/** Where lines are open. What says nothing connects, as ThingsBoard does. */
const OPEN: FormField[] = [
  { name: "lineGaps", label: "Where values are missing, the line is", type: "select", options: GAPS, otherwise: "connect", help: "Charts of dashboards that come from ThingsBoard are connected, as they are there." },
  { name: "lineGapSeconds", label: "Without a value for longer than (seconds)", type: "number", least: 0, when: ({ lineGaps }) => lineGaps === "after" },
];

const isCompared = ({ comparisonEnabled }: FormValues): boolean => comparisonEnabled === true;
const COMPARISON: FormField[] = [
  heading("Comparison"),
  { name: "comparisonEnabled", label: "Compare with an earlier time", type: "boolean", help: "Keys that are compared are switched on each by themselves." },
  { name: "timeForComparison", label: "Earlier time", type: "select", options: PERIODS, otherwise: "previousInterval", when: isCompared },
  { name: "comparisonCustomIntervalValue", label: "So long before (milliseconds)", type: "number", when: (values) => isCompared(values) && values["timeForComparison"] === "customInterval" },
];

const COMMON: FormField[] = [...OVER, ...LEGEND, AXES, THRESHOLDS, ...COMPARISON];
const STACK: FormField = { name: "stack", label: "Stack the values", type: "boolean" };
const ZOOM = usuallyOn("dataZoom", "Time can be zoomed");

const fill = (path: string, when: FormField["when"]): FormField[] => [
  { name: `${path}.type`, label: "Filled", type: "select", options: FILLS, otherwise: "none", ...(when === undefined ? {} : { when }) },
  { name: `${path}.opacity`, label: "Opacity, 0 to 1", type: "number", when: (values) => (when?.(values) ?? true) && valueAt(values, `${path}.type`) === "opacity" },
];
const comparesKey = (values: FormValues): boolean => valueAt(values, "comparisonSettings.showValuesForComparison") === true;
const isLine = ({ type }: FormValues): boolean => type !== "bar";
const isBar = ({ type }: FormValues): boolean => type === "bar";

const LINE_KEY: FormField[] = [
  { ...usuallyOn("lineSettings.showLine", "Draw the line"), when: isLine },
  { name: "lineSettings.smooth", label: "Smooth", type: "boolean", when: isLine },
  { name: "lineSettings.step", label: "In steps", type: "boolean", when: isLine },
  { name: "lineSettings.stepType", label: "Steps rise", type: "select", options: STEPS, otherwise: "start", when: (values) => isLine(values) && valueAt(values, "lineSettings.step") === true },
  { name: "lineSettings.showPoints", label: "Draw the points", type: "boolean", when: isLine },
  { name: "lineSettings.lineWidth", label: "Width of the line, pixels", type: "number", when: isLine },
  ...fill("lineSettings.fillAreaSettings", isLine),
];
const barKey = (when?: FormField["when"]): FormField[] => [
  { name: "barSettings.showLabel", label: "Write the values", type: "boolean", ...(when === undefined ? {} : { when }) },
  { name: "barSettings.borderRadius", label: "Rounding, pixels", type: "number", ...(when === undefined ? {} : { when }) },
  ...fill("barSettings.backgroundSettings", when),
];
const EVERY_KEY: FormField[] = [
  AXIS_CHOICE,
  usuallyOn("showInLegend", "In the legend"),
  { name: "dataHiddenByDefault", label: "Hidden at the beginning", type: "boolean" },
  { name: "excludeFromStacking", label: "Not in the stack", type: "boolean" },
  { name: "tooltipValueFormatter", label: "Words of its value at the pointer: function", type: "code", help: "function (value, latestData)" },
  { name: "comparisonSettings.showValuesForComparison", label: "Compare this key", type: "boolean" },
  { name: "comparisonSettings.comparisonValuesLabel", label: "Label of the earlier time", when: comparesKey },
  { name: "comparisonSettings.color", label: "Color of the earlier time", type: "color", when: comparesKey },
];
const STATES: FormField = {
  name: "states", label: "States", type: "rows",
  fields: [
    { name: "label", label: "Label" },
    { name: "value", label: "Height at which it is drawn", type: "number" },
    { name: "sourceType", label: "It stands for", type: "select", options: [{ value: "constant", label: "One value" }, { value: "range", label: "A range of values" }], initial: "constant", otherwise: "constant" },
    { name: "sourceValue", label: "Value", type: "value", when: ({ sourceType }) => sourceType !== "range" },
    { name: "sourceRangeFrom", label: "From", type: "number", when: ({ sourceType }) => sourceType === "range" },
    { name: "sourceRangeTo", label: "Below", type: "number", when: ({ sourceType }) => sourceType === "range" },
  ],
};
const isSeparate = ({ showSeparateAxis }: FormValues): boolean => showSeparateAxis === true;
/** The charts of old dashboards, and their keys. */
const OLD: FormField[] = [STACK, { name: "smoothLines", label: "Smooth", type: "boolean" }, usuallyOn("showLegend", "Show the legend")];
const OLD_KEY: FormField[] = [
  usuallyOn("showLines", "Draw the line"),
  { name: "lineWidth", label: "Width of the line, pixels", type: "number", least: 0 },
  { name: "fillLines", label: "Filled", type: "boolean" },
  { name: "showPoints", label: "Draw the points", type: "boolean" },
  { name: "hideDataByDefault", label: "Hidden at the beginning", type: "boolean" },
  { name: "removeFromLegend", label: "Not in the legend", type: "boolean" },
  { name: "showSeparateAxis", label: "An axis of its own", type: "boolean" },
  { name: "axisTitle", label: "Label of the axis", when: isSeparate },
  { name: "axisPosition", label: "It stands", type: "select", options: SIDES.slice(2), otherwise: "left", when: isSeparate },
  { name: "axisMin", label: "Least value", type: "number", when: isSeparate },
  { name: "axisMax", label: "Greatest value", type: "number", when: isSeparate },
];
const DRAWN: FormField = { name: "type", label: "This key as", type: "select", required: true, otherwise: "line", options: [{ value: "line", label: "Line" }, { value: "bar", label: "Bars" }] };

export const CHART_FORMS: readonly WidgetForm[] = [
  { names: /^time_series_chart$/, settings: [STACK, ...OPEN, ZOOM, ...COMMON], keys: [DRAWN, ...LINE_KEY, ...barKey(isBar), ...EVERY_KEY] },
  { names: /^line_chart$/, settings: [STACK, ...OPEN, ZOOM, ...COMMON], keys: [...LINE_KEY, ...EVERY_KEY] },
  { names: /^bar_chart$/, settings: [STACK, ZOOM, ...COMMON], keys: [...barKey(), ...EVERY_KEY] },
  {
    names: /^point_chart$/,
    settings: [STACK, ZOOM, ...COMMON],
    keys: [{ name: "lineSettings.pointSize", label: "Size of the points, pixels", type: "number" }, { name: "lineSettings.showPointLabel", label: "Write the values", type: "boolean" }, ...EVERY_KEY],
  },
  { names: /^state_chart$/, settings: [STATES, ZOOM, ...LEGEND, AXES, THRESHOLDS, ...COMPARISON], keys: [...LINE_KEY.filter(({ name }) => !/smooth|step/.test(name)), ...EVERY_KEY] },
  {
    names: /^bar_chart_with_labels$/,
    settings: [ZOOM, usuallyOn("showBarLabel", "Write the labels"), usuallyOn("showBarValue", "Write the values"), ...LEGEND],
    keys: [{ name: "dataHiddenByDefault", label: "Hidden at the beginning", type: "boolean" }],
  },
  {
    names: /(^|_)range_chart(_with_background)?$/,
    settings: [ranges("rangeColors", "Ranges with their colors"), { name: "outOfRangeColor", label: "Color outside of them", type: "color" }, usuallyOn("fillArea", "Fill the area"), usuallyOn("showRangeThresholds", "Draw the limits of the ranges"), ...OPEN, ZOOM, ...LEGEND],
  },
  { names: /^charts\.basic_timeseries$/, settings: [...OLD, ...OPEN], keys: OLD_KEY },
  { names: /^charts\.(timeseries_bars_flot|state_chart)$/, settings: OLD, keys: OLD_KEY },
];
