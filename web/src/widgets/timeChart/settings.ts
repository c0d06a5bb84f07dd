// The settings of charts over time, as they are stored, with what is missing filled in.

import { list, number, object, text, type Json } from "@/dashboard/json";
import type { DataKey, Widget } from "@/dashboard/model";
import { bodyOf } from "@/dashboard/actions";
import { rootScale } from "@/ui/rootScale";
import { safeColor } from "../color";
import { fromFlot, isFlot } from "./flot";

export type ChartKind = "line" | "bar" | "point" | "state" | "range" | "labelled";
export type Side = "top" | "bottom" | "left" | "right";

/** A number, or where it comes from. */
export interface ValueSource {
  type: "constant" | "latestKey" | "entity";
  value: number | undefined;
  key: string;
  alias: string;
}

export interface Axis {
  id: string;
  show: boolean;
  label: string;
  side: Side;
  labels: boolean;
  ticks: boolean;
  line: boolean;
  splits: boolean;
  /** Colours that were chosen; those of the theme otherwise. */
  colors: { label: string | undefined; tickLabel: string | undefined; splits: string | undefined };
  tickSize: number;
  /** Fonts as a canvas takes them. */
  fonts: { label: string; tickLabel: string };
  units: string | undefined;
  decimals: number | undefined;
  interval: number | undefined;
  splitNumber: number | undefined;
  min: ValueSource | undefined;
  max: ValueSource | undefined;
  formatter: string | undefined;
  generator: string | undefined;
}

export interface Fill {
  type: "none" | "opacity" | "gradient";
  opacity: number;
  start: number;
  end: number;
}

export interface LineLook {
  show: boolean;
  step: "start" | "middle" | "end" | undefined;
  smooth: boolean;
  dash: number[] | undefined;
  width: number;
  points: boolean;
  shape: string;
  size: number;
  pointLabels: boolean;
  labelBelow: boolean;
  fill: Fill;
}

export interface BarLook {
  border: number;
  radius: number;
  labels: boolean;
  fill: Fill;
}

export interface KeyLook {
  axis: string;
  bars: boolean;
  inLegend: boolean;
  hidden: boolean;
  stacks: boolean;
  line: LineLook;
  bar: BarLook;
  tooltip: string | undefined;
  comparedLabel: string | undefined;
  comparedColor: string | undefined;
}

export interface Threshold {
  source: ValueSource;
  axis: string;
  units: string | undefined;
  /** The unit that a value from elsewhere has, if it is to be converted. */
  storedUnits: string | undefined;
  decimals: number | undefined;
  color: string | undefined;
  dash: number[] | undefined;
  width: number;
  start: string;
  startSize: number;
  end: string;
  endSize: number;
  label: boolean;
  position: string;
  labelColor: string | undefined;
  labelBackground: string | undefined;
}

export interface Band {
  from: number | undefined;
  to: number | undefined;
  color: string;
}

export interface ChartState {
  label: string;
  value: number;
  from: number | undefined;
  to: number | undefined;
  exactly: string | undefined;
}

export interface Legend {
  show: boolean;
  side: Side;
  columns: boolean;
  sorted: boolean;
  values: { min: boolean; max: boolean; avg: boolean; total: boolean; latest: boolean };
}

export interface ChartSettings {
  kind: ChartKind;
  axes: Axis[];
  time: Axis;
  /** The axis of the times that are compared with. */
  earlier: Axis;
  timeFormats: Json;
  thresholds: Threshold[];
  bands: Band[] | undefined;
  outside: string;
  states: ChartState[];
  stack: boolean;
  zoom: boolean;
  /** Whether alarms of the entities lie over the lines. */
  alarms: boolean;
  grid: { show: boolean; background: string | undefined; border: number; borderColor: string | undefined };
  legend: Legend;
  tooltip: { show: boolean; byPoint: boolean; date: boolean; interval: boolean; total: boolean; hideZeros: boolean; format: unknown };
  bars: { gap: number; intervalGap: number; group: boolean; relative: boolean; share: number; absolute: number };
  barText: { label: boolean; value: boolean };
}

const flag = (value: unknown, otherwise: boolean): boolean => (typeof value === "boolean" ? value : otherwise);

/** Returns a colour that was chosen. The greys that are black or white in part are those of a light theme, and stand for the present one. */
export function chosen(value: unknown): string | undefined {
  const color = safeColor(value);
  return color === undefined || /^(rgba\(\s*(0,\s*0,\s*0|255,\s*255,\s*255)\s*,|rgb\(0, ?0, ?0\)$|#000(000)?$|#37383b$|#ccc$)/i.test(color) ? undefined : color;
}

function valueSource(value: unknown): ValueSource | undefined {
  const plain = number(value);
  if (plain !== undefined) {
    return { type: "constant", value: plain, key: "", alias: "" };
  }
  const stored = object(value);
  const type = (["constant", "latestKey", "entity"] as const).find((one) => one === stored["type"]);
  return type === undefined ? undefined : { type, value: number(stored["value"]), key: text(stored[type === "entity" ? "entityKey" : "latestKey"]) ?? "", alias: text(stored["entityAlias"]) ?? "" };
}

/** Sizes of letters that fit an axis, pixels. */
const LETTERS = { least: 6, most: 40, usual: 12 };
const lettersOf = (font: Json): number => rootScale() * Math.min(LETTERS.most, Math.max(LETTERS.least, number(font["size"]) ?? LETTERS.usual));

/** Returns a font of settings as a canvas takes it; its family is that of the page, which has no others. */
export function canvasFont(value: unknown, weight: string): string {
  const font = object(value);
  const own = text(font["weight"]) ?? String(number(font["weight"]) ?? "");
  const style = font["style"] === "italic" || font["style"] === "oblique" ? `${font["style"]} ` : "";
  return `${style}${/^(normal|bold|bolder|lighter|[1-9]00)$/.test(own) ? own : weight} ${lettersOf(font)}px system-ui, sans-serif`;
}

function sideOf(value: unknown, otherwise: Side): Side {
  return (["top", "bottom", "left", "right"] as const).find((one) => one === value) ?? otherwise;
}

function readAxis(value: unknown, id: string, side: Side, quiet: boolean, splits: boolean): Axis {
  const axis = object(value);
  return {
    id,
    show: flag(axis["show"], true),
    label: text(axis["label"]) ?? "",
    side: sideOf(axis["position"], side),
    labels: flag(axis["showTickLabels"], true),
    ticks: flag(axis["showTicks"], !quiet),
    line: flag(axis["showLine"], !quiet),
    splits: flag(axis["showSplitLines"], splits),
    colors: { label: chosen(axis["labelColor"]), tickLabel: chosen(axis["tickLabelColor"]), splits: chosen(axis["splitLinesColor"]) },
    tickSize: lettersOf(object(axis["tickLabelFont"])),
    fonts: { label: canvasFont(axis["labelFont"], "600"), tickLabel: canvasFont(axis["tickLabelFont"], "400") },
    units: text(axis["units"]) ?? text(object(axis["units"])["from"]),
    decimals: number(axis["decimals"]),
    interval: number(axis["interval"]),
    splitNumber: number(axis["splitNumber"]),
    min: valueSource(axis["min"]),
    max: valueSource(axis["max"]),
    formatter: bodyOf(axis["ticksFormatter"]),
    generator: bodyOf(axis["ticksGenerator"]),
  };
}

function dashOf(type: unknown, width: number): number[] | undefined {
  const own = list(type).flatMap((one) => number(one) ?? []);
  return own.length > 0 ? own : type === "dashed" ? [width * 4, width * 3] : type === "dotted" ? [width, width * 2] : undefined;
}

function readFill(value: unknown): Fill {
  const fill = object(value);
  const gradient = object(fill["gradient"]);
  const type = (["none", "opacity", "gradient"] as const).find((one) => one === fill["type"]) ?? "none";
  return { type, opacity: number(fill["opacity"]) ?? 0.4, start: (number(gradient["start"]) ?? 100) / 100, end: (number(gradient["end"]) ?? 0) / 100 };
}

function readLine(value: unknown, kind: ChartKind): LineLook {
  const line = object(value);
  const width = Math.min(20, Math.max(0.5, number(line["lineWidth"]) ?? 2));
  const stepType = (["start", "middle", "end"] as const).find((one) => one === line["stepType"]) ?? "start";
  return {
    show: kind !== "point" && flag(line["showLine"], true),
    step: kind === "state" ? "end" : flag(line["step"], false) ? stepType : undefined,
    smooth: kind !== "state" && flag(line["smooth"], false),
    dash: dashOf(line["lineType"], width),
    width,
    points: kind === "point" || flag(line["showPoints"], false),
    shape: text(line["pointShape"]) ?? (kind === "point" ? "circle" : "emptyCircle"),
    size: Math.min(60, Math.max(1, number(line["pointSize"]) ?? (kind === "point" ? 8 : 4))),
    pointLabels: flag(line["showPointLabel"], false),
    labelBelow: line["pointLabelPosition"] === "bottom",
    fill: readFill(line["fillAreaSettings"]),
  };
}

function readBar(value: unknown): BarLook {
  const bar = object(value);
  return {
    border: flag(bar["showBorder"], false) ? (number(bar["borderWidth"]) ?? 2) : 0,
    radius: Math.max(0, number(bar["borderRadius"]) ?? 0),
    labels: flag(bar["showLabel"], false),
    fill: readFill(bar["backgroundSettings"]),
  };
}

/** Reads how a key is drawn. */
export function keyLook(key: DataKey, settings: Json, kind: ChartKind): KeyLook {
  const own = key.settings;
  const compared = object(own["comparisonSettings"]);
  const isRange = kind === "range";
  const barLook = { showBorder: settings["showBarBorder"], borderWidth: settings["barBorderWidth"], borderRadius: settings["barBorderRadius"], backgroundSettings: settings["barBackgroundSettings"] };
  return {
    axis: text(own["yAxisId"]) ?? "default",
    bars: kind === "bar" || kind === "labelled" || (kind === "line" && own["type"] === "bar"),
    inLegend: flag(own["showInLegend"], true),
    hidden: flag(own["dataHiddenByDefault"], false),
    stacks: own["excludeFromStacking"] !== true,
    line: readLine(isRange ? { ...settings, fillAreaSettings: { type: settings["fillArea"] === false ? "none" : "opacity", opacity: settings["fillAreaOpacity"] ?? 0.7 } } : own["lineSettings"], kind),
    bar: readBar(kind === "labelled" ? barLook : own["barSettings"]),
    tooltip: bodyOf(own["tooltipValueFormatter"]) ?? bodyOf(settings["tooltipValueFormatter"]),
    comparedLabel: text(compared["comparisonValuesLabel"]),
    comparedColor: safeColor(compared["color"]),
  };
}

function readThreshold(value: unknown): Threshold[] {
  const stored = object(value);
  const source = valueSource(stored["type"] === undefined && stored["value"] !== undefined ? stored["value"] : stored);
  const width = Math.min(20, Math.max(0.5, number(stored["lineWidth"]) ?? 1));
  return source === undefined
    ? []
    : [
        {
          source,
          axis: text(stored["yAxisId"]) ?? "default",
          units: text(stored["units"]) ?? text(object(stored["units"])["from"]),
          storedUnits: text(stored["storedUnits"]),
          decimals: number(stored["decimals"]),
          color: chosen(stored["lineColor"]),
          dash: dashOf(stored["lineType"], width),
          width,
          start: text(stored["startSymbol"]) ?? "none",
          startSize: number(stored["startSymbolSize"]) ?? 5,
          end: text(stored["endSymbol"]) ?? "arrow",
          endSize: number(stored["endSymbolSize"]) ?? 5,
          label: flag(stored["showLabel"], true),
          position: text(stored["labelPosition"]) ?? "end",
          labelColor: chosen(stored["labelColor"]),
          labelBackground: stored["enableLabelBackground"] === true ? (chosen(stored["labelBackground"]) ?? "theme") : undefined,
        },
      ];
}

/** Reads bands of colour, lowest first; they don't overlap. */
export function readBands(value: unknown): Band[] {
  const read = list(value).flatMap((one): Band[] => {
    const band = object(one);
    const [from, to, color] = [number(band["from"]), number(band["to"]), safeColor(band["color"])];
    return color === undefined || (from === undefined && to === undefined) ? [] : [{ from, to, color }];
  });
  return read.sort((a, b) => (a.from ?? -Infinity) - (b.from ?? -Infinity));
}

const DEFAULT_BANDS: Json[] = [
  { to: -20, color: "#234CC7" },
  { from: -20, to: 0, color: "#305AD7" },
  { from: 0, to: 10, color: "#7191EF" },
  { from: 10, to: 20, color: "#FFA600" },
  { from: 20, to: 30, color: "#F36900" },
  { from: 30, to: 40, color: "#F04022" },
  { from: 40, color: "#D81838" },
];

function readStates(value: unknown): ChartState[] {
  return list(value).flatMap((one): ChartState[] => {
    const state = object(one);
    const shown = number(state["value"]);
    const isRange = state["sourceType"] === "range";
    const exactly = state["sourceValue"];
    return shown === undefined
      ? []
      : [{ label: text(state["label"]) ?? String(shown), value: shown, from: isRange ? number(state["sourceRangeFrom"]) : undefined, to: isRange ? number(state["sourceRangeTo"]) : undefined, exactly: isRange || exactly === undefined || exactly === null ? undefined : String(exactly) }];
  });
}

function readLegend(settings: Json, kind: ChartKind): Legend {
  const config = object(settings["legendConfig"]);
  const side = sideOf(config["position"] ?? settings["legendPosition"], "top");
  const plain = kind === "range" || kind === "labelled" || kind === "state";
  return {
    show: flag(settings["showLegend"], true),
    side,
    columns: config["direction"] === "column" || side === "left" || side === "right",
    sorted: config["sortDataKeys"] === true,
    values: {
      min: config["showMin"] === true,
      max: config["showMax"] === true,
      avg: flag(config["showAvg"], !plain && settings["legendConfig"] === undefined),
      total: config["showTotal"] === true,
      latest: config["showLatest"] === true,
    },
  };
}

/** Returns what kind of chart a widget type is. */
export function kindOf(fqn: string): ChartKind {
  return /range_chart/.test(fqn) ? "range" : /state_chart$/.test(fqn) ? "state" : /bar_chart_with_labels$/.test(fqn) ? "labelled" : /(^|\.)bar_chart$|bars_flot$/.test(fqn) ? "bar" : /point_chart$/.test(fqn) ? "point" : "line";
}

function barWidths(settings: Json): ChartSettings["bars"] {
  const widths = object(settings["barWidthSettings"]);
  const single = object(settings["noAggregationBarWidthSettings"]);
  const group = single["strategy"] !== "separate";
  const width = object(single[group ? "groupWidth" : "barWidth"]);
  return { gap: number(widths["barGap"]) ?? 0.3, intervalGap: number(widths["intervalGap"]) ?? 0.6, group, relative: flag(width["relative"], true), share: (number(width["relativeWidth"]) ?? 2) / 100, absolute: number(width["absoluteWidth"]) ?? 1_000 };
}

/** Reads the settings of a chart; older ones are turned into those of today first. */
export function chartSettings(widget: Widget): ChartSettings {
  const kind = kindOf(widget.fqn);
  const settings = isFlot(widget.fqn) ? fromFlot(widget) : widget.settings;
  const single = kind === "range" || kind === "labelled";
  const units = text(widget.config["units"]) ?? text(object(widget.config["units"])["from"]);
  const decimals = number(widget.config["decimals"]);
  const stored = single ? { default: { ...object(settings["yAxis"]), units, decimals } } : object(settings["yAxes"]);
  const entries = Object.entries(stored).sort(([, a], [, b]) => (number(object(a)["order"]) ?? 0) - (number(object(b)["order"]) ?? 0));
  const axes = (entries.length === 0 ? [["default", {}] as [string, unknown]] : entries).map(([id, axis]) => readAxis(axis, id, "left", single, true));
  const bands = kind === "range" ? readBands(settings["rangeColors"] ?? DEFAULT_BANDS) : undefined;
  const marks = kind === "range" && settings["showRangeThresholds"] !== false ? [...new Set((bands ?? []).flatMap(({ from, to }) => [from, to]).filter((one) => one !== undefined))] : [];
  const rangeLook = { lineType: "dashed", startSymbol: "circle", labelPosition: "insideEndTop", enableLabelBackground: true, units, decimals, ...object(settings["rangeThreshold"]) };
  const grid = object(settings["grid"]);
  return {
    kind,
    axes,
    time: readAxis(settings["xAxis"], "x", "bottom", kind === "labelled", !single),
    earlier: readAxis(settings["comparisonXAxis"], "earlier", "top", false, false),
    timeFormats: object(object(settings["xAxis"])["ticksFormat"]),
    thresholds: [...marks.map((value) => ({ ...rangeLook, type: "constant", value })), ...list(settings["thresholds"])].flatMap(readThreshold),
    bands,
    outside: safeColor(settings["outOfRangeColor"]) ?? "#ccc",
    states: kind === "state" ? readStates(settings["states"]) : [],
    stack: settings["stack"] === true,
    zoom: flag(settings["dataZoom"], true),
    alarms: settings["showAlarms"] === true,
    grid: { show: grid["show"] === true, background: chosen(grid["backgroundColor"]), border: number(grid["borderWidth"]) ?? 1, borderColor: chosen(grid["borderColor"]) },
    legend: readLegend(settings, kind),
    tooltip: {
      show: flag(settings["showTooltip"], true),
      byPoint: settings["tooltipTrigger"] === "point",
      date: flag(settings["tooltipShowDate"], true),
      interval: flag(settings["tooltipDateInterval"], true),
      total: settings["tooltipStackedShowTotal"] === true,
      hideZeros: settings["tooltipHideZeroValues"] === true,
      format: settings["tooltipDateFormat"],
    },
    bars: barWidths(settings),
    barText: { label: kind === "labelled" && flag(settings["showBarLabel"], true), value: kind === "labelled" && flag(settings["showBarValue"], true) },
  };
}
