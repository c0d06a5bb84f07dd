// How the card of a widget looks, as its configuration says. Only what can't reach beyond the card is taken.

import type { CSSProperties } from "react";
import { rootScale } from "@/ui/rootScale";
import { isLoadingStyle } from "@/ui/safeCss";
import { isImplicitWhite, safeColor, schemeOn, type Scheme } from "@/widgets/color";
import { number, object, text, type Json } from "./json";

const LENGTH = /^-?\d+(\.\d+)?(px|em|rem|%|vh|vw|pt)?$/;
const LENGTHS = /^(-?\d+(\.\d+)?(px|em|rem|%|vh|vw|pt)?\s*){1,4}$/;

/** Properties of styles that stay within the card. */
const SAFE = /^(color|background(-color)?|font(-(size|family|style|weight|variant))?|line-height|letter-spacing|text-(align|transform|decoration|shadow|overflow)|white-space|opacity|padding(-(left|right|top|bottom))?|border(-(radius|color|width|style|left|right|top|bottom|top-left-radius|top-right-radius|bottom-left-radius|bottom-right-radius))?|box-shadow)$/;

function length(value: unknown): string | undefined {
  const read = typeof value === "number" ? `${value}px` : text(value)?.trim();
  return read !== undefined && LENGTHS.test(read) ? read.replace(/(^|\s)(\d+(\.\d+)?)(?=\s|$)/g, "$1$2px") : undefined;
}

/** Reads a map of CSS that a file brings along. */
export function safeStyle(value: unknown): CSSProperties {
  const style: Record<string, string> = {};
  for (const [name, stored] of Object.entries(object(value))) {
    const property = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    const read = typeof stored === "number" ? String(stored) : text(stored);
    if (read !== undefined && SAFE.test(property) && !isLoadingStyle(read) && !/[;{}<>]/.test(read) && read.length < 200) {
      style[property.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase())] = read;
    }
  }
  return style;
}

/** Lets a length in pixels grow with the letters of the page. */
function grown(length: string): string {
  const pixels = /^([\d.]+)px$/.exec(length)?.[1];
  return pixels === undefined ? length : `${Number(pixels) * rootScale()}px`;
}

/** Reads a font as ThingsBoard stores it; its family is that of the page, which has no others. */
export function fontStyle(value: unknown): CSSProperties {
  const font = object(value);
  const size = number(font["size"]);
  const unit = text(font["sizeUnit"]) ?? "px";
  const weight = text(font["weight"]) ?? number(font["weight"]);
  const style = text(font["style"]);
  const height = text(font["lineHeight"]);
  return {
    ...(size === undefined || !LENGTH.test(`${size}${unit}`) ? {} : { fontSize: grown(`${size}${unit}`) }),
    ...(weight === undefined || !/^(normal|bold|bolder|lighter|[1-9]00)$/.test(String(weight)) ? {} : { fontWeight: weight as number }),
    ...(style === "italic" || style === "oblique" ? { fontStyle: style } : {}),
    ...(height === undefined || !LENGTH.test(height) ? {} : { lineHeight: grown(height) }),
  };
}

/** The usual colour of text in files, which follows the theme instead. */
const isImplicitBlack = (color: string): boolean => /^(rgba?\(0, ?0, ?0(, ?(0?\.[3-9]\d*|1))?\)|#000(000)?|#212121)$/i.test(color);

/** Returns the colour behind a card. Newer widgets have it within them, before a card that can't be seen. */
function backgroundOf(fqn: string, config: Json, settings: Json): string | undefined {
  if (settings["background"] === undefined && NEWER.test(fqn)) {
    return undefined;
  }
  const inner = object(settings["background"]);
  const color = safeColor(inner["type"] === "color" ? inner["color"] : undefined) ?? safeColor(config["backgroundColor"]);
  return color === undefined || isImplicitWhite(color) ? undefined : color;
}

/** What newer widgets keep free within their card where their settings don't say; the first that fits counts. */
const PADDINGS: readonly [names: RegExp, padding: string][] = [
  [/(^|[._])(alarm|entity)_count$/, "12px"],
  [/aggregated_value_card/, "18px"],
  [/(^|\.)slider$/, "24px"],
  [/(^|\.)single_switch$/, "18px 24px"],
  [/(^|\.)status_widget$/, "0px"],
  [/wind_speed_and_direction/, "20px 24px 24px"],
  [/(^|[._])map$/, "8px"],
  [/chart_card|label_(value_)?card|progress_bar|unread_notif|mobile_app_qr/, "12px"],
  [/(^|\.)horizontal_.*_card(_with_background)?$/, "0px 24px"],
  [/_card(_with_background)?$/, "24px"],
];

/** Newer widgets whose settings may say nothing of their ground, which is white then. */
const NEWER = /\.(bars|pie|(horizontal_)?doughnut|polar_area|radar|label(_value)?_card|(image_|trip_|route_)?map|power_button|single_switch|slider|status_widget|toggle_button)$/;

/** Returns whether a widget has a ground of its own within its card. Older ones have none, and keep nothing free. */
const isNewer = (fqn: string, settings: Json): boolean => settings["background"] !== undefined || NEWER.test(fqn);

/** Returns what a widget keeps free within its card. */
function innerPadding(fqn: string, settings: Json): string | undefined {
  const usual = PADDINGS.find(([names]) => names.test(fqn))?.[1];
  return length(settings["padding"]) ?? (isNewer(fqn, settings) ? (usual ?? "12px") : /_count$/.test(fqn) ? usual : undefined);
}

/** Letters without a colour of their own on a ground that has one. */
export const LETTERS_ON = { light: "rgba(0, 0, 0, 0.87)", dark: "rgba(255, 255, 255, 0.87)" };

/** Returns the scheme of a card that has a ground of its own; none where it has that of the page. */
export function cardScheme(fqn: string, config: Json, settings: Json): Scheme | undefined {
  const background = backgroundOf(fqn, config, settings);
  return background === undefined ? undefined : schemeOn(background);
}

/** Returns the style of a card. Its own padding and that which newer widgets have within it are one here. */
export function cardStyle(fqn: string, config: Json, settings: Json): CSSProperties {
  const background = backgroundOf(fqn, config, settings);
  const color = safeColor(config["color"]);
  const scheme = cardScheme(fqn, config, settings);
  const [outer, inner] = [length(config["padding"]), innerPadding(fqn, settings)];
  const isOne = (value: string | undefined): value is string => value !== undefined && !value.includes(" ");
  const isNone = outer === undefined || /^0(px)?$/.test(outer);
  const padding = isNone ? (inner ?? outer) : isOne(outer) && isOne(inner) ? `calc(${outer} + ${inner})` : outer;
  const margin = length(config["margin"]);
  const radius = length(config["borderRadius"]);
  return {
    ...(background === undefined ? {} : { background }),
    ...(scheme === undefined ? {} : { colorScheme: scheme, color: LETTERS_ON[scheme] }),
    ...(color === undefined || isImplicitBlack(color) ? {} : { color }),
    ...(padding === undefined ? {} : { padding }),
    ...(margin === undefined || !isOne(margin) || margin === "0px" ? {} : { margin, height: `calc(100% - 2 * ${margin})` }),
    ...(radius === undefined ? {} : { borderRadius: radius }),
    ...(config["dropShadow"] === false ? { boxShadow: "none" } : {}),
    ...safeStyle(config["widgetStyle"]),
  };
}

/** Returns the style of a card's title. */
export function titleStyle(config: Json): CSSProperties {
  const color = safeColor(config["titleColor"]);
  return { ...fontStyle(config["titleFont"]), ...(color === undefined || isImplicitBlack(color) ? {} : { color }), ...safeStyle(config["titleStyle"]) };
}
