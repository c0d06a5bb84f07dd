// Colours of settings: one, by ranges, or along a gradient. Those of themes adapt, explicit ones stay.

import { list, number, object, text, type Json } from "@/dashboard/model";

export const PALETTE = ["#2196f3", "#f44336", "#4caf50", "#ff9800", "#9c27b0", "#009688", "#795548", "#607d8b"];

/** Whether a background is the default white, which follows the theme instead. */
export function isImplicitWhite(color: string): boolean {
  return /^(#fff(fff)?|rgba?\(255, ?255, ?255(, ?[\d.]+)?\)|white)$/i.test(color);
}

/** Returns a colour that a style may have; nothing that could end the declaration. */
export function safeColor(value: unknown): string | undefined {
  const color = text(value);
  return color !== undefined && /^(#[\da-f]{3,8}|[a-z]+|(rgb|hsl)a?\([\d., %/deg-]+\))$/i.test(color) ? color : undefined;
}

function inRange(range: Json, value: number): boolean {
  const from = number(range["from"]);
  const to = number(range["to"]);
  return from !== undefined && from === to ? value === from : value >= (from ?? -Infinity) && value < (to ?? Infinity);
}

/** Returns the colour of the first range that a value lies in. */
export function rangeColor(ranges: unknown, value: number): string | undefined {
  return safeColor(list(ranges).map(object).find((range) => inRange(range, value))?.["color"]);
}

function gradientColor(gradient: Json, value: number): string | undefined {
  const stops = list(gradient["gradient"]).flatMap((stop) => safeColor(stop) ?? []);
  const low = number(gradient["minValue"]) ?? 0;
  const high = number(gradient["maxValue"]) ?? 100;
  const at = Math.min(1, Math.max(0, (value - low) / (high - low || 1))) * (stops.length - 1);
  const [from, to] = [stops[Math.floor(at)], stops[Math.ceil(at)]];
  return from === undefined || to === undefined ? undefined : `color-mix(in srgb, ${to} ${Math.round((at % 1) * 100)}%, ${from})`;
}

/** Returns the colour that settings give a value; older settings hold the colour itself. */
export function colorOf(settings: unknown, value: number, otherwise: string): string {
  const stored = object(settings);
  const ranges = Array.isArray(stored["rangeList"]) ? stored["rangeList"] : object(stored["rangeList"])["range"];
  const type = stored["type"];
  const found = type === "range" ? rangeColor(ranges, value) : type === "gradient" ? gradientColor(object(stored["gradient"]), value) : undefined;
  return found ?? safeColor(stored["color"]) ?? safeColor(settings) ?? otherwise;
}
