// How a button looks by its settings. Colours that a dashboard doesn't name follow the theme.

import type { CSSProperties } from "react";
import { object, text, type Json } from "@/dashboard/model";
import { isImplicitWhite, safeColor } from "../color";

export type ButtonType = "outlined" | "filled" | "underlined" | "basic";

export interface ButtonLook {
  type: ButtonType;
  label: string | undefined;
  icon: string | undefined;
  style: CSSProperties;
}

const MAIN = "#3F52DD";
const STANDARD_MAIN = /^#3f52dd$/i;

/** Returns a colour as ink on the page's own ground: in the dark a lighter one of the same kind. */
export function inkOf(color: string): string {
  return STANDARD_MAIN.test(color) ? "light-dark(#3F52DD, #a5b4ff)" : `light-dark(${color}, color-mix(in srgb, ${color} 55%, white))`;
}

/** Returns a length that a style may have. */
export function safeLength(value: unknown): string | undefined {
  const length = text(value);
  return length !== undefined && /^\d+(\.\d+)?(px|rem|em|%)( \d+(\.\d+)?(px|rem|em|%)){0,3}$/.test(length) ? length : undefined;
}

function colorsOf(look: Json, state: string): { main: string; ground: string | undefined } {
  const own = object(object(look["customStyle"])[state]);
  const main = own["overrideMainColor"] === true ? safeColor(own["mainColor"]) : undefined;
  const ground = own["overrideBackgroundColor"] === true ? safeColor(own["backgroundColor"]) : undefined;
  const stored = ground ?? safeColor(look["backgroundColor"]);
  return { main: main ?? safeColor(look["mainColor"]) ?? MAIN, ground: stored === undefined || isImplicitWhite(stored) ? undefined : stored };
}

/** Reads the look of a button in a state of it: `enabled`, `activated` or `disabled`. */
export function lookOf(value: unknown, state: "enabled" | "activated" | "disabled", otherwise: { label: string; icon?: string }): ButtonLook {
  const look = object(value);
  const { main, ground } = colorsOf(look, state);
  const type = (["filled", "underlined", "basic"] as const).find((one) => one === look["type"]) ?? "outlined";
  const radius = safeLength(look["borderRadius"]);
  const ink = type === "filled" ? (ground ?? "#fff") : ground === undefined ? inkOf(main) : main;
  const style: Record<string, string> = { "--ink": ink, "--ground": type === "filled" ? main : (ground ?? "transparent") };
  if (radius !== undefined) {
    style["--round"] = radius;
  }
  return {
    type,
    label: look["showLabel"] === false ? undefined : (text(look["label"]) ?? otherwise.label),
    icon: look["showIcon"] === false ? undefined : (text(look["icon"]) ?? otherwise.icon),
    style: style as CSSProperties,
  };
}
