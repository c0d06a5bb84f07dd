// How the line or the bars of a key are drawn.

import { bodyOf } from "@/dashboard/actions";
import { number, object, text, type Json } from "@/dashboard/json";
import type { DataKey } from "@/dashboard/model";
import { safeColor } from "../color";
import type { ChartKind } from "./kinds";
import { dashOf, flag } from "./stored";

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
