// The axes of a chart as its settings have them.

import { bodyOf } from "@/dashboard/actions";
import { number, object, text, type Json } from "@/dashboard/json";
import { rootScale } from "@/ui/rootScale";
import { chosen } from "../color";
import { flag, valueSource, type ValueSource } from "./stored";

export type Side = "top" | "bottom" | "left" | "right";

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

export function sideOf(value: unknown, otherwise: Side): Side {
  return (["top", "bottom", "left", "right"] as const).find((one) => one === value) ?? otherwise;
}

export function readAxis(value: unknown, id: string, side: Side, quiet: boolean, splits: boolean): Axis {
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
