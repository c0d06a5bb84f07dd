// Colours of settings: one, by ranges, or along a gradient. Those of themes adapt, explicit ones stay.

import { list, number, object, text, type Json } from "@/dashboard/model";

export const PALETTE = ["#2196f3", "#f44336", "#4caf50", "#ff9800", "#9c27b0", "#009688", "#795548", "#607d8b"];

/** The same on a dark ground, on which the others are hard to see. */
const PALETTE_ON_DARK = ["#64b5f6", "#e57373", "#81c784", "#ffb74d", "#ba68c8", "#4db6ac", "#a1887f", "#90a4ae"];

export type Scheme = "light" | "dark";

/** Returns a colour of the palette, which nobody has chosen, as it is on a ground of a scheme; any other one stays. */
export function paletteColor(color: string, scheme: Scheme): string {
  return (scheme === "dark" ? PALETTE_ON_DARK[PALETTE.indexOf(color.toLowerCase())] : undefined) ?? color;
}

/** Whether a background is the default white, which follows the theme instead. */
export function isImplicitWhite(color: string): boolean {
  return /^(#fff(fff)?|rgba?\(255, ?255, ?255(, ?[\d.]+)?\)|white)$/i.test(color);
}

/** Whether the background of a grid is the default one, which follows the theme instead. */
export function isImplicitGray(color: string): boolean {
  return /^(#eee(eee)?|rgba?\(238, ?238, ?238(, ?1)?\))$/i.test(color) || isImplicitWhite(color);
}

/** Returns a colour that a style may have; nothing that could end the declaration. */
export function safeColor(value: unknown): string | undefined {
  const color = text(value);
  return color !== undefined && /^(#[\da-f]{3,8}|[a-z]+|(rgb|hsl)a?\([\d., %/deg-]+\))$/i.test(color) ? color : undefined;
}

/** Reads a colour as its red, green, blue from 0 to 1, and how far it covers; none for names and other notations. */
function partsOf(color: string): [number, number, number, number] | undefined {
  const hex = /^#([\da-f]{3,4}|[\da-f]{6}|[\da-f]{8})$/i.exec(color.trim())?.[1];
  if (hex !== undefined) {
    const size = hex.length < 6 ? 1 : 2;
    const part = (n: number): number => parseInt(hex.slice(n * size, (n + 1) * size).padEnd(2, hex.charAt(n)), 16) / 255;
    return [part(0), part(1), part(2), hex.length === 4 || hex.length === 8 ? part(3) : 1];
  }
  const [r, g, b, alpha] = /^rgba?\(([^)]*)\)$/i.exec(color.trim())?.[1]?.split(/[\s,/]+/).filter((part) => part !== "").map((part) => (part.endsWith("%") ? Number(part.slice(0, -1)) / 100 : Number(part))) ?? [];
  return r === undefined || g === undefined || b === undefined ? undefined : [r / 255, g / 255, b / 255, alpha ?? 1];
}

/** Returns how bright a colour is, from 0 to 1 as WCAG counts it; none where it lets most of its ground through. */
export function brightnessOf(color: string): number | undefined {
  const parts = partsOf(color);
  if (parts === undefined || parts.some(Number.isNaN) || parts[3] < 0.5) {
    return undefined;
  }
  const [r = 0, g = 0, b = 0] = parts.slice(0, 3).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** Whether letters on a ground have to be dark or light; none where the ground is not known. */
export function schemeOn(ground: string): "light" | "dark" | undefined {
  const brightness = brightnessOf(ground);
  return brightness === undefined ? undefined : brightness > 0.18 ? "light" : "dark";
}

/** Letters darker than this have a contrast of less than three on the ground of the dark theme. */
const TOO_DARK = 0.153;

/** Returns a colour of letters that was chosen for a light ground in a way that it can be read in the dark theme, too. */
export function inkColor(color: string): string {
  const brightness = brightnessOf(color);
  return brightness !== undefined && brightness < TOO_DARK ? `light-dark(${color}, color-mix(in srgb, ${color} 35%, white))` : color;
}

/** Returns a colour that was chosen. The greys that are black or white in part are those of a light theme, and stand for the present one. */
export function chosen(value: unknown): string | undefined {
  const color = safeColor(value);
  return color === undefined || /^(rgba\(\s*(0,\s*0,\s*0|255,\s*255,\s*255)\s*,|rgb\(0, ?0, ?0\)$|#000(000)?$|#37383b$|#ccc$)/i.test(color) ? undefined : color;
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

/** Numbers of advanced settings may come from elsewhere; those that are known here are constant ones. */
const constant = (value: unknown): number | undefined => number(value) ?? number(object(value)["value"]);

function gradientColor(gradient: Json, value: number): string | undefined {
  const advanced = gradient["advancedMode"] === true ? list(gradient["gradientAdvanced"]).map(object) : [];
  const placed = advanced.flatMap((stop) => {
    const [color, at] = [safeColor(stop["color"]), constant(stop["source"] ?? stop)];
    return color === undefined || at === undefined ? [] : [{ color, at }];
  });
  const low = number(gradient["minValue"]) ?? 0;
  const high = number(gradient["maxValue"]) ?? 100;
  const plain = list(gradient["gradient"]).flatMap((stop) => safeColor(stop) ?? []);
  const stops = placed.length > 1 ? placed.sort((a, b) => a.at - b.at) : plain.map((color, n) => ({ color, at: low + ((high - low) * n) / Math.max(1, plain.length - 1) }));
  const next = stops.findIndex(({ at }) => at >= value);
  const [from, to] = [stops[Math.max(0, (next < 0 ? stops.length : next) - 1)], stops[next < 0 ? stops.length - 1 : next]];
  if (from === undefined || to === undefined || !Number.isFinite(value)) {
    return undefined;
  }
  const share = to.at === from.at ? 1 : Math.min(1, Math.max(0, (value - from.at) / (to.at - from.at)));
  return `color-mix(in srgb, ${to.color} ${Math.round(share * 100)}%, ${from.color})`;
}

function rangesOf(stored: Json): unknown {
  const settings = object(stored["rangeList"]);
  return Array.isArray(stored["rangeList"])
    ? stored["rangeList"]
    : settings["advancedMode"] === true
      ? list(settings["rangeAdvanced"]).map((range) => ({ ...object(range), from: constant(object(range)["from"]), to: constant(object(range)["to"]) }))
      : settings["range"];
}

/** Returns the colour that settings give a value; older settings hold the colour itself. */
export function colorOf(settings: unknown, value: number, otherwise: string): string {
  const stored = object(settings);
  const type = stored["type"];
  const found = type === "range" ? rangeColor(rangesOf(stored), value) : type === "gradient" ? gradientColor(object(stored["gradient"]), value) : undefined;
  return found ?? safeColor(stored["color"]) ?? safeColor(settings) ?? otherwise;
}
