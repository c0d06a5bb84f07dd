// Forms for charts over time and for each of their keys.

import { valueAt, type FormField, type FormValues } from "@/ui/form/values";
import type { WidgetForm } from "../forms";
import { heading, usuallyOn } from "./parts";

const SIDES = [
  { value: "top", label: "Above" },
  { value: "bottom", label: "Below the chart" },
  { value: "left", label: "on the left" },
  { value: "right", label: "on the right" },
];
const PERIODS = [
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
const FILLS = [
  { value: "none", label: "Not filled" },
  { value: "opacity", label: "Evenly" },
  { value: "gradient", label: "With a gradient" },
];

const hasConfig = (values: FormValues): boolean => typeof values["legendConfig"] === "object" && values["legendConfig"] !== null;
const legend = (values: FormValues): boolean => values["showLegend"] !== false;
/** Axes beside the usual one are set as JSON. */
const usualAxis = (values: FormValues): boolean => {
  const axes = values["yAxes"];
  return typeof axes !== "object" || axes === null || Object.keys(axes).length === 0 || "default" in axes;
};

/** A limit of the axis: a plain number, or an object that says where it comes from. */
function limit(name: string, label: string): FormField[] {
  const path = `yAxes.default.${name}`;
  const isObject = (values: FormValues): boolean => typeof valueAt(values, path) === "object" && valueAt(values, path) !== null;
  return [
    { name: path, label, type: "number", when: (values) => usualAxis(values) && !isObject(values) },
    { name: `${path}.value`, label, type: "number", when: (values) => isObject(values) && valueAt(values, `${path}.type`) === "constant" },
  ];
}

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

const AXIS: FormField[] = [
  { ...heading("Axis of values"), when: usualAxis },
  { name: "yAxes.default.label", label: "Label", when: usualAxis },
  { name: "yAxes.default.units", label: "Unit", when: (values) => usualAxis(values) && typeof valueAt(values, "yAxes.default.units") !== "object" },
  { name: "yAxes.default.decimals", label: "Decimals", type: "number", when: usualAxis },
  ...limit("min", "Least value"),
  ...limit("max", "Greatest value"),
  { name: "yAxes.default.position", label: "It stands", type: "select", options: SIDES.slice(2), otherwise: "left", when: usualAxis },
];

const never = (): boolean => false;
const THRESHOLDS: FormField = {
  name: "thresholds", label: "Thresholds", type: "rows",
  fields: [
    { name: "type", label: "Comes from", initial: "constant", when: never },
    { name: "yAxisId", label: "Axis of values", initial: "default", when: never },
    { name: "value", label: "Value", type: "number", when: ({ type }) => type === undefined || type === "constant" },
    { name: "units", label: "Unit", when: ({ units }) => typeof units !== "object" },
    { name: "lineColor", label: "Color", type: "color" },
    usuallyOn("showLabel", "Write its value"),
  ],
};

const isCompared = ({ comparisonEnabled }: FormValues): boolean => comparisonEnabled === true;
const COMPARISON: FormField[] = [
  heading("Comparison"),
  { name: "comparisonEnabled", label: "Compare with an earlier time", type: "boolean", help: "Keys that are compared are switched on each by themselves." },
  { name: "timeForComparison", label: "Earlier time", type: "select", options: PERIODS, otherwise: "previousInterval", when: isCompared },
  { name: "comparisonCustomIntervalValue", label: "So long before (milliseconds)", type: "number", when: (values) => isCompared(values) && values["timeForComparison"] === "customInterval" },
];

const COMMON: FormField[] = [...LEGEND, ...AXIS, THRESHOLDS, ...COMPARISON];
const STACK: FormField = { name: "stack", label: "Stack the values", type: "boolean" };
const ZOOM = usuallyOn("dataZoom", "Time can be zoomed");

const fill = (path: string, when: FormField["when"]): FormField[] => [
  { name: `${path}.type`, label: "Filled", type: "select", options: FILLS, otherwise: "none", ...(when === undefined ? {} : { when }) },
  { name: `${path}.opacity`, label: "Opacity, 0 to 1", type: "number", when: (values) => (when?.(values) ?? true) && valueAt(values, `${path}.type`) === "opacity" },
];
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
  usuallyOn("showInLegend", "In the legend"),
  { name: "comparisonSettings.showValuesForComparison", label: "Compare this key", type: "boolean" },
];
const DRAWN: FormField = { name: "type", label: "This key as", type: "select", required: true, otherwise: "line", options: [{ value: "line", label: "Line" }, { value: "bar", label: "Bars" }] };

export const CHART_FORMS: readonly WidgetForm[] = [
  { names: /^time_series_chart$/, settings: [STACK, ZOOM, ...COMMON], keys: [DRAWN, ...LINE_KEY, ...barKey(isBar), ...EVERY_KEY] },
  { names: /^line_chart$/, settings: [STACK, ZOOM, ...COMMON], keys: [...LINE_KEY, ...EVERY_KEY] },
  { names: /^bar_chart$/, settings: [STACK, ZOOM, ...COMMON], keys: [...barKey(), ...EVERY_KEY] },
  {
    names: /^point_chart$/,
    settings: [STACK, ZOOM, ...COMMON],
    keys: [{ name: "lineSettings.pointSize", label: "Size of the points, pixels", type: "number" }, { name: "lineSettings.showPointLabel", label: "Write the values", type: "boolean" }, ...EVERY_KEY],
  },
];
