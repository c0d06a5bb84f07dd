// Forms for shares of latest values.

import { valueAt, type FormField, type FormValues } from "@/ui/form/values";
import type { WidgetForm } from "../forms";
import { colors, heading, letters, only, usuallyOn } from "../form/parts";

const SIDES = [
  { value: "top", label: "Above" },
  { value: "bottom", label: "Below the chart" },
  { value: "left", label: "on the left" },
  { value: "right", label: "on the right" },
];
const TOLD = [
  { value: "percentage", label: "The share in percent" },
  { value: "absolute", label: "The value" },
];
const LABEL_PLACES = [
  { value: "outside", label: "Beside the slices" },
  { value: "inside", label: "In the slices" },
];
const LINES = [
  { value: "solid", label: "Solid" },
  { value: "dashed", label: "Dashed" },
  { value: "dotted", label: "Dotted" },
];
const SHAPES = [
  { value: "polygon", label: "Straight" },
  { value: "circle", label: "Round" },
];
const POINTS = [
  { value: "circle", label: "Circles" },
  { value: "rect", label: "Squares" },
  { value: "diamond", label: "Diamonds" },
  { value: "triangle", label: "Triangles" },
];
const FILLS = [
  { value: "none", label: "Not filled" },
  { value: "opacity", label: "Evenly" },
];

const isOn = (path: string) => (values: FormValues): boolean => valueAt(values, path) === true;
const isNotOff = (path: string) => (values: FormValues): boolean => valueAt(values, path) !== false;
const isWide = (path: string) => (values: FormValues): boolean => Number(valueAt(values, path) ?? 0) > 0;

const SORTED: FormField = { name: "sortSeries", label: "The greatest first", type: "boolean" };
const CLOCKWISE: FormField = { name: "clockwise", label: "Clockwise", type: "boolean" };
const TOOLTIP = usuallyOn("showTooltip", "Tell more of what is pointed at");

const legend = (side: string): FormField[] => [
  heading("Legend"),
  usuallyOn("showLegend", "Show the legend"),
  ...only(isNotOff("showLegend"), [
    { name: "legendPosition", label: "It stands", type: "select", options: SIDES, otherwise: side },
    usuallyOn("legendShowTotal", "With the total"),
    heading("Labels of the legend"),
    { name: "legendLabelColor", label: "Color", type: "color" },
    ...letters("legendLabelFont", 13),
    heading("Values of the legend"),
    { name: "legendValueColor", label: "Color", type: "color" },
    ...letters("legendValueFont", 13),
  ]),
];
const TOLD_MORE: FormField[] = [
  heading("What is pointed at"),
  TOOLTIP,
  ...only(isNotOff("showTooltip"), [
    { name: "tooltipValueType", label: "It tells", type: "select", options: TOLD, otherwise: "percentage" },
    { name: "tooltipValueDecimals", label: "Decimals of the share", type: "number", least: 0, most: 15, otherwise: 0, when: ({ tooltipValueType }) => tooltipValueType !== "absolute" },
  ]),
];
const SCALE: FormField[] = [{ name: "axisTickLabelColor", label: "Color", type: "color" }, ...letters("axisTickLabelFont", 12)];
const AXIS: FormField[] = [
  heading("Scale"),
  { name: "axisMin", label: "Least value", type: "number" },
  { name: "axisMax", label: "Greatest value", type: "number" },
  ...SCALE,
];
/** Fields of bars, which petals are, too; `width` is how much of their room they take. */
const bars = (width: number, further: readonly FormField[] = []): FormField[] => [
  heading("Bars"),
  { name: "barSettings.barWidth", label: "Width (% of its room)", type: "number", least: 5, most: 100, otherwise: width },
  ...further,
  { name: "barSettings.showBorder", label: "With a border", type: "boolean" },
  { name: "barSettings.borderWidth", label: "Width of the border", type: "number", least: 0, otherwise: 2, when: isOn("barSettings.showBorder") },
  heading("Values"),
  usuallyOn("barSettings.showLabel", "Write the values"),
  ...only(isNotOff("barSettings.showLabel"), [{ name: "barSettings.labelColor", label: "Color", type: "color" }, ...letters("barSettings.labelFont", 12)]),
];

const RADAR: FormField[] = [
  { name: "shape", label: "Lines of the net", type: "select", options: SHAPES, otherwise: "polygon" },
  { name: "color", label: "Color", type: "color" },
  { name: "normalizeAxes", label: "The greatest value fills the net", type: "boolean" },
  heading("Line"),
  usuallyOn("showLine", "Draw the line"),
  ...only(isNotOff("showLine"), [
    { name: "lineType", label: "Kind of line", type: "select", options: LINES, otherwise: "solid" },
    { name: "lineWidth", label: "Width of the line", type: "number", least: 1, most: 20, otherwise: 2 },
  ]),
  { name: "fillAreaSettings.type", label: "Area is filled", type: "select", options: FILLS, otherwise: "opacity" },
  { name: "fillAreaSettings.opacity", label: "How far it covers, from 0 to 1", type: "number", least: 0, most: 1, otherwise: 0.4, when: (values) => valueAt(values, "fillAreaSettings.type") !== "none" },
  heading("Points"),
  usuallyOn("showPoints", "Draw the points"),
  ...only(isNotOff("showPoints"), [
    { name: "pointShape", label: "Points are", type: "select", options: POINTS, otherwise: "circle" },
    { name: "pointSize", label: "Size of the points, pixels", type: "number", least: 1, most: 30, otherwise: 4 },
  ]),
  heading("Values"),
  { name: "showLabel", label: "Write the values", type: "boolean" },
  ...only(isOn("showLabel"), [
    { name: "labelPosition", label: "They stand", type: "select", options: [{ value: "top", label: "above" }, { value: "bottom", label: "below" }], otherwise: "top" },
    { name: "labelColor", label: "Color", type: "color" },
    ...letters("labelFont", 11),
  ]),
  heading("Labels"),
  usuallyOn("axisShowLabel", "Write the labels"),
  ...only(isNotOff("axisShowLabel"), letters("axisLabelFont", 12)),
  heading("Scale"),
  { name: "axisShowTickLabels", label: "Write the scale", type: "boolean" },
  ...only(isOn("axisShowTickLabels"), SCALE),
];

export const LATEST_CHART_FORMS: readonly WidgetForm[] = [
  {
    names: /^pie$/,
    settings: [
      SORTED, CLOCKWISE,
      { name: "radius", label: "Radius (% of the room)", type: "number", least: 20, most: 100, otherwise: 80 },
      { name: "borderWidth", label: "Width of the border", type: "number", least: 0, otherwise: 0 },
      { name: "borderColor", label: "Color of the border", type: "color", when: isWide("borderWidth") },
      heading("Labels"),
      usuallyOn("showLabel", "Write the labels"),
      ...only(isNotOff("showLabel"), [
        { name: "labelPosition", label: "They stand", type: "select", options: LABEL_PLACES, otherwise: "outside" },
        { name: "labelColor", label: "Color", type: "color" },
        ...letters("labelFont", 12),
      ]),
      ...legend("bottom"), ...TOLD_MORE,
    ],
  },
  ...(["doughnut", "horizontal_doughnut"] as const).map((name): WidgetForm => ({
    names: new RegExp(`^${name}$`),
    settings: [
      SORTED, CLOCKWISE,
      { name: "layout", label: "In the middle", type: "select", options: [{ value: "default", label: "Nothing" }, { value: "with_total", label: "The total" }], otherwise: "default" },
      ...only(({ layout }) => layout === "with_total", [...colors("totalValueColor", "Color of the total"), ...letters("totalValueFont", 24)]),
      ...legend(name === "doughnut" ? "bottom" : "right"), ...TOLD_MORE,
    ],
  })),
  { names: /^bars$/, settings: [SORTED, ...AXIS, ...bars(80, [{ name: "barSettings.borderRadius", label: "Rounding of the corners", type: "number", least: 0, otherwise: 0 }]), ...legend("bottom"), ...TOLD_MORE] },
  { names: /^polar_area$/, settings: [SORTED, { name: "angleAxisStartAngle", label: "The first one begins at (degrees)", type: "number", otherwise: 90 }, ...AXIS, ...bars(100), ...legend("bottom"), ...TOLD_MORE] },
  { names: /^radar$/, settings: [SORTED, ...RADAR, ...legend("bottom"), ...TOLD_MORE] },
  {
    names: /^charts\.pie$/,
    settings: [
      { name: "radius", label: "Radius (a share of the room, from 0 to 1)", type: "number", least: 0.2, most: 1, otherwise: 1 },
      { name: "innerRadius", label: "Hole (a share of the radius, from 0 to 1)", type: "number", least: 0, most: 0.95, otherwise: 0 },
      { name: "stroke.width", label: "Width of the border", type: "number", least: 0, otherwise: 0 },
      { name: "stroke.color", label: "Color of the border", type: "color", when: isWide("stroke.width") },
      { name: "showLabels", label: "Write the labels", type: "boolean" },
      usuallyOn("legend.show", "Show the legend"),
      TOOLTIP,
    ],
  },
  {
    names: /^charts\.doughnut_chart_js$/,
    settings: [
      { name: "borderWidth", label: "Width of the border", type: "number", least: 0, otherwise: 0 },
      { name: "borderColor", label: "Color of the border", type: "color", when: isWide("borderWidth") },
      usuallyOn("legend.display", "Show the legend"),
      { name: "legend.labelsFontColor", label: "Color of its labels", type: "color", when: isNotOff("legend.display") },
      TOOLTIP,
    ],
  },
  { names: /^charts\.(bars|\w+_chart_js)$/, settings: [TOOLTIP] },
];
