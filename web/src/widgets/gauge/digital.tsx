// Digital gauges: arcs, rings and bars, with glow, dashes and ticks as settings say.

import type { CSSProperties, ReactElement } from "react";
import { fontStyle } from "@/dashboard/look";
import { list, number, object, text, type Json } from "@/dashboard/json";
import { chosen, inkColor } from "../color";
import { onCircle } from "../shapes";
import { shareOf } from "../values";
import classes from "../gauge.module.css";

export interface FaceProps {
  /** The value as text. */
  shown: string;
  value: number;
  settings: Json;
  scale: [number, number];
  color: string;
}

/** A number as short as it can be read. */
export const short = (value: number): string => String(Number(value.toPrecision(6)));

/** How large letters of stored sizes are in a drawing of 100 by 100: those of analogue gauges were made for one of about 420, of digital ones for 250. */
export const LETTERS = { analogue: 0.24, digital: 0.4 };

/** The look of text that a font of the settings names; a colour of a light theme follows the present one instead. */
export function inkOf(settings: Json, font: string, scale = LETTERS.digital): CSSProperties {
  const stored = object(settings[font]);
  const [color, size] = [chosen(stored["color"]), number(stored["size"])];
  const { fontWeight, fontStyle: style } = fontStyle(stored);
  return {
    ...(color === undefined ? {} : { fill: inkColor(color) }),
    ...(size === undefined ? {} : { fontSize: `${Math.min(30, Math.max(2, size * scale)).toFixed(2)}px` }),
    ...(fontWeight === undefined ? {} : { fontWeight }),
    ...(style === undefined ? {} : { fontStyle: style }),
  };
}

/** Where settings want ticks beside the scale's own ends. */
function ticksIn(settings: Json, [low, high]: [number, number]): number[] {
  const stored = [...list(settings["ticks"]), ...list(settings["ticksValue"]).map((source) => object(source)["value"])];
  return settings["showTicks"] === true ? stored.flatMap((tick) => number(tick) ?? []).filter((tick) => tick >= low && tick <= high) : [];
}

const groundOf = (settings: Json): string => {
  const color = chosen(settings["gaugeColor"]);
  return color === undefined || /^#eee(eee)?$/i.test(color) ? "var(--mantine-color-default-border)" : color;
};

function glowOf(settings: Json, color: string): { filter?: string } {
  const glow = Math.min(100, Math.max(0, number(settings["neonGlowBrightness"]) ?? 0));
  return glow === 0 ? {} : { filter: `drop-shadow(0 0 ${(glow / 40).toFixed(1)}px ${color}) drop-shadow(0 0 ${(glow / 20).toFixed(1)}px ${color})` };
}

function arc(radius: number, from: number, to: number): string {
  const end = to - from >= 360 ? from + 359.99 : to;
  const [[x0, y0], [x1, y1]] = [onCircle(50, 50, radius, from), onCircle(50, 50, radius, end)];
  return `M ${x0.toFixed(2)} ${y0.toFixed(2)} A ${radius} ${radius} 0 ${end - from > 180 ? 1 : 0} 1 ${x1.toFixed(2)} ${y1.toFixed(2)}`;
}

export function Ring({ shown, value, settings, scale, color, whole }: FaceProps & { whole: boolean }): ReactElement {
  const begin = 180 - (number(settings["donutStartAngle"]) ?? 90) - 90;
  const [start, sweep] = whole ? [begin, 360] : [-120, 240];
  const angle = (at: number): number => start + sweep * shareOf(at, scale);
  const width = 20 * Math.min(1, Math.max(0.2, number(settings["gaugeWidthScale"]) ?? 0.75)) * 0.8;
  const radius = 46 - width / 2;
  const dash = number(settings["dashThickness"]) ?? 0;
  const stroke = { fill: "none", strokeWidth: width, strokeLinecap: settings["roundedLineCap"] === true && dash === 0 ? ("round" as const) : ("butt" as const), ...(dash > 0 ? { strokeDasharray: `${dash} ${Math.max(0.6, dash / 3)}` } : {}) };
  return (
    <>
      <path d={arc(radius, start, start + sweep)} stroke={groundOf(settings)} {...stroke} />
      {angle(value) > start && <path d={arc(radius, start, angle(value))} stroke={color} {...stroke} style={glowOf(settings, color)} />}
      {ticksIn(settings, scale).map((tick) => {
        const [[x1, y1], [x2, y2]] = [onCircle(50, 50, radius - width / 2, angle(tick)), onCircle(50, 50, radius + width / 2, angle(tick))];
        return <line key={tick} x1={x1} y1={y1} x2={x2} y2={y2} stroke={chosen(settings["colorTicks"]) ?? "currentColor"} strokeWidth={(number(settings["tickWidth"]) ?? 4) / 4} />;
      })}
      {settings["showValue"] !== false && settings["hideValue"] !== true && (
        <text x="50" y="54" className={classes["big"]} style={inkOf(settings, "valueFont")}>
          {shown}
        </text>
      )}
      {!whole && settings["showMinMax"] !== false && settings["hideMinMax"] !== true && (
        <>
          <text x="18" y="86" className={classes["small"]} style={inkOf(settings, "minMaxFont")}>
            {short(scale[0])}
          </text>
          <text x="82" y="86" className={classes["small"]} style={inkOf(settings, "minMaxFont")}>
            {short(scale[1])}
          </text>
        </>
      )}
    </>
  );
}

export function Lying({ shown, value, settings, scale, color }: FaceProps): ReactElement {
  const height = 18 * Math.min(1, Math.max(0.2, number(settings["gaugeWidthScale"]) ?? 0.75));
  const round = settings["roundedLineCap"] === true ? height / 2 : 2;
  return (
    <>
      {settings["showValue"] !== false && settings["hideValue"] !== true && (
        <text x="50" y="38" className={classes["big"]} style={inkOf(settings, "valueFont")}>
          {shown}
        </text>
      )}
      <rect x="5" y="48" width="90" height={height} rx={round} fill={groundOf(settings)} />
      <rect x="5" y="48" width={90 * shareOf(value, scale)} height={height} rx={round} fill={color} style={glowOf(settings, color)} />
      {ticksIn(settings, scale).map((tick) => {
        const x = 5 + 90 * shareOf(tick, scale);
        return <line key={tick} x1={x} x2={x} y1="48" y2={48 + height} stroke={chosen(settings["colorTicks"]) ?? "currentColor"} strokeWidth={(number(settings["tickWidth"]) ?? 4) / 4} />;
      })}
      {settings["showMinMax"] !== false && settings["hideMinMax"] !== true && (
        <>
          <text x="5" y={57 + height} className={classes["side"]} style={inkOf(settings, "minMaxFont")}>
            {short(scale[0])}
          </text>
          <text x="95" y={57 + height} className={classes["end"]} style={inkOf(settings, "minMaxFont")}>
            {short(scale[1])}
          </text>
        </>
      )}
    </>
  );
}

/** Turns the colours of old gauges into those of today. */
export function barColorOf(settings: Json, [low, high]: [number, number]): unknown {
  const stored = object(settings["barColor"]);
  if (settings["barColor"] !== undefined && settings["barColor"] !== null) {
    return stored["type"] === "gradient" ? { ...stored, gradient: { minValue: low, maxValue: high, ...object(stored["gradient"]) } } : settings["barColor"];
  }
  const color = text(settings["defaultColor"]);
  const fixed = list(settings["fixedLevelColors"]).map((level) => ({ from: object(level)["from"], to: object(level)["to"], color: object(level)["color"] }));
  if (settings["useFixedLevelColor"] === true && fixed.length > 0) {
    return { type: "range", color, rangeList: { advancedMode: true, rangeAdvanced: fixed } };
  }
  const levels = list(settings["levelColors"]).flatMap((level) => text(level) ?? []);
  return levels.length > 0 ? { type: "gradient", color, gradient: { gradient: levels, minValue: low, maxValue: high } } : { type: "constant", color };
}
