// The settings of charts over time, as they are stored, with what is missing filled in.

import { list, number, object, text, type Json } from "@/dashboard/json";
import type { Widget } from "@/dashboard/model";
import { chosen, safeColor } from "../color";
import { readAxis, sideOf, type Axis, type Side } from "./axes";
import { fromFlot, isFlot } from "./flot";
import { readOpenness, type Openness } from "./gaps";
import { kindOf, type ChartKind } from "./kinds";
import { flag } from "./stored";
import { readBands, readStates, readThreshold, type Band, type ChartState, type Threshold } from "./thresholds";

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
  /** Where lines are left open. States hold until the next one is told. */
  gaps: Openness;
  zoom: boolean;
  /** Whether alarms of the entities lie over the lines. */
  alarms: boolean;
  grid: { show: boolean; background: string | undefined; border: number; borderColor: string | undefined };
  legend: Legend;
  tooltip: { show: boolean; byPoint: boolean; date: boolean; interval: boolean; total: boolean; hideZeros: boolean; format: unknown };
  bars: { gap: number; intervalGap: number; group: boolean; relative: boolean; share: number; absolute: number };
  barText: { label: boolean; value: boolean };
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
    gaps: kind === "state" ? undefined : readOpenness(settings),
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
