// The drawings of latest values: slices, rings, petals, columns and nets, in a box of 100 by 100.

import type { CSSProperties, ReactElement } from "react";
import { number, object, text, type Json } from "@/dashboard/json";
import { chosen } from "../color";
import { inkOf } from "../gauge/digital";
import { onCircle, ringPath, slicesOf, ticksOf } from "../shapes";

export interface Share {
  id: string;
  label: string;
  value: number;
  shown: string;
  color: string;
}

export interface FaceProps {
  shares: Share[];
  settings: Json;
  /** What is said of a share when it is pointed at; nothing where settings want nothing. */
  words: (share: Share) => string;
}

const LINE = "var(--mantine-color-default-border)";
/** How large letters of stored sizes are in a drawing of 100 by 100. */
const LETTERS = 0.4;
const TOTAL = 0.5;
const lettersOf = (settings: Json, font: string): CSSProperties => inkOf(settings, font, LETTERS);
/** The colour of a text; one of a light theme follows the present one instead. */
const fillOf = (color: unknown, usual: string): string => chosen(color) ?? usual;

function Title({ words }: { words: string }): ReactElement | null {
  return words === "" ? null : <title>{words}</title>;
}

/** A number as short as it can be read. */
const short = (value: number): string => String(Number(value.toPrecision(5)));

/** A pie, or a ring with its total in the middle. */
export function Slices({ shares, settings, words, ring, total }: FaceProps & { ring: boolean; total: { text: string; color: string } | undefined }): ReactElement {
  const sizes = slicesOf(shares.map(({ value }) => value));
  const turned = settings["clockwise"] === false || settings["clockwise"] === undefined;
  const labelled = !ring && settings["showLabel"] !== false;
  const outside = labelled && settings["labelPosition"] !== "inside";
  const radius = ring ? 46 : (Math.min(100, Math.max(20, number(settings["radius"]) ?? 80)) / 100) * (outside ? 44 : 48);
  const border = number(settings["borderWidth"]) ?? 0;
  const hole = ring ? 32 : (radius * Math.min(95, Math.max(0, number(settings["innerRadius"]) ?? 0))) / 100;
  return (
    <>
      {shares.map((share, n) => {
        const [a, b] = sizes[n] ?? [0, 0];
        const [from, to] = turned ? [360 - b, 360 - a] : [a, b];
        const [x, y] = onCircle(50, 50, outside ? radius + 4 : radius * 0.65, (from + to) / 2);
        return to > from ? (
          <g key={share.id}>
            <path d={ringPath(50, 50, radius, hole, from, to)} fill={share.color} stroke={border > 0 ? (chosen(settings["borderColor"]) ?? "currentColor") : "var(--mantine-color-body)"} strokeWidth={border > 0 ? border / 3 : 0.6}>
              <Title words={words(share)} />
            </path>
            {labelled && to - from > 8 && (
              <text x={x} y={y + 1.5} style={{ fontSize: 4.8, fontWeight: 400, textAnchor: outside ? (x > 51 ? "start" : x < 49 ? "end" : "middle") : "middle", fill: fillOf(settings["labelColor"], outside ? "currentColor" : "#fff"), ...lettersOf(settings, "labelFont") }}>
                {share.label}
              </text>
            )}
          </g>
        ) : null;
      })}
      {ring && total !== undefined && (
        <text x="50" y="54" style={{ fill: total.color, ...inkOf(settings, "totalValueFont", TOTAL) }}>
          {total.text}
        </text>
      )}
    </>
  );
}

function limitsOf(shares: Share[], settings: Json): [number, number] {
  const values = shares.map(({ value }) => value);
  const ticks = ticksOf(Math.min(0, ...values), Math.max(...values, Math.min(0, ...values) + 1), 4);
  const step = (ticks[1] ?? 1) - (ticks[0] ?? 0);
  const most = Math.max(...values);
  const high = number(settings["axisMax"]) ?? (most > (ticks.at(-1) ?? 0) ? (ticks.at(-1) ?? 0) + step : (ticks.at(-1) ?? 1));
  const low = number(settings["axisMin"]) ?? ticks[0] ?? 0;
  return high > low ? [low, high] : [low, low + 1];
}

/** The border of a bar: darker than it, where settings want one. */
const borderOf = (bar: Json): { stroke?: string; strokeWidth?: number } => (bar["showBorder"] === true ? { stroke: "color-mix(in srgb, currentColor 60%, transparent)", strokeWidth: Math.min(10, Math.max(0, number(bar["borderWidth"]) ?? 2)) / 3 } : {});

export function Columns({ shares, settings, words }: FaceProps): ReactElement {
  const [low, high] = limitsOf(shares, settings);
  const bar = object(settings["barSettings"]);
  const share = Math.min(1, Math.max(0.05, (number(bar["barWidth"]) ?? 80) / 100));
  const width = 88 / shares.length;
  const y = (value: number): number => 94 - ((Math.min(high, Math.max(low, value)) - low) / (high - low)) * 84;
  const ground = y(Math.max(low, Math.min(high, 0)));
  return (
    <>
      {ticksOf(low, high, 4).map((tick) => (
        <g key={tick}>
          <line x1="11" x2="99" y1={y(tick)} y2={y(tick)} stroke={LINE} strokeWidth="0.3" />
          <text x="10" y={y(tick) + 1.3} style={{ fontSize: 4.8, fontWeight: 400, textAnchor: "end", fill: fillOf(settings["axisTickLabelColor"], "var(--soft-text)"), ...lettersOf(settings, "axisTickLabelFont") }}>
            {short(tick)}
          </text>
        </g>
      ))}
      {shares.map((one, n) => {
        const [top, bottom] = [Math.min(y(one.value), ground), Math.max(y(one.value), ground)];
        return (
          <g key={one.id}>
            <rect x={11 + n * width + (width * (1 - share)) / 2} y={top} width={width * share} height={Math.max(0.3, bottom - top)} rx={Math.min(4, (number(bar["borderRadius"]) ?? 0) / 3)} fill={one.color} {...borderOf(bar)}>
              <Title words={words(one)} />
            </rect>
            {bar["showLabel"] !== false && (
              <text x={11 + n * width + width / 2} y={top - 1.5} style={{ fontSize: 4.8, fontWeight: 500, fill: fillOf(bar["labelColor"], "currentColor"), ...lettersOf(bar, "labelFont") }}>
                {one.shown}
              </text>
            )}
          </g>
        );
      })}
      <line x1="11" x2="99" y1={ground} y2={ground} stroke="currentColor" strokeWidth="0.4" />
    </>
  );
}

export function Petals({ shares, settings, words }: FaceProps): ReactElement {
  const [low, high] = limitsOf(shares, settings);
  const begin = 90 - (number(settings["angleAxisStartAngle"]) ?? 90);
  const bar = object(settings["barSettings"]);
  const width = 360 / shares.length;
  const inset = (width * (1 - Math.min(1, Math.max(0.05, (number(bar["barWidth"]) ?? 100) / 100)))) / 2;
  const radius = (value: number): number => (44 * (Math.min(high, Math.max(low, value)) - low)) / (high - low);
  return (
    <>
      {ticksOf(low, high, 4).filter((tick) => tick > low).map((tick) => (
        <g key={tick}>
          <circle cx="50" cy="50" r={radius(tick)} fill="none" stroke={LINE} strokeWidth="0.3" />
          <text x="50.5" y={50 - radius(tick) + 3.5} style={{ fontSize: 4.8, fontWeight: 400, textAnchor: "start", fill: fillOf(settings["axisTickLabelColor"], "var(--soft-text)"), ...lettersOf(settings, "axisTickLabelFont") }}>
            {short(tick)}
          </text>
        </g>
      ))}
      {shares.map((share, n) => {
        const [from, to] = [begin + n * width + inset, begin + (n + 1) * width - inset];
        const [x, y] = onCircle(50, 50, Math.max(8, radius(share.value) - 6), (from + to) / 2);
        return (
          <g key={share.id}>
            <path d={ringPath(50, 50, Math.max(0.5, radius(share.value)), 0, from, to)} fill={share.color} fillOpacity="0.8" {...borderOf(bar)}>
              <Title words={words(share)} />
            </path>
            {bar["showLabel"] !== false && width > 15 && (
              <text x={x} y={y + 1.3} style={{ fontSize: 4.8, fontWeight: 500, fill: fillOf(bar["labelColor"], "currentColor"), ...lettersOf(bar, "labelFont") }}>
                {share.shown}
              </text>
            )}
          </g>
        );
      })}
    </>
  );
}

/** The outline of a point of a net, by the name of its shape. */
function pointPath(shape: unknown, x: number, y: number, r: number): string {
  switch (shape) {
    case "rect":
    case "roundRect":
      return `M ${x - r} ${y - r} h ${2 * r} v ${2 * r} h ${-2 * r} Z`;
    case "diamond":
      return `M ${x} ${y - r} l ${r} ${r} l ${-r} ${r} l ${-r} ${-r} Z`;
    case "triangle":
      return `M ${x} ${y - r} l ${r} ${1.8 * r} h ${-2 * r} Z`;
    default:
      return ringPath(x, y, r, 0, 0, 360);
  }
}

export function Net({ shares, settings, words }: FaceProps): ReactElement {
  const color = text(settings["color"]) ?? shares[0]?.color ?? "#3F52DD";
  const [low, high] = settings["normalizeAxes"] === true ? [0, Math.max(...shares.map(({ value }) => value), Number.MIN_VALUE)] : limitsOf(shares, settings);
  const fill = object(settings["fillAreaSettings"]);
  const opacity = fill["type"] === "none" ? 0 : Math.min(1, Math.max(0, number(fill["opacity"]) ?? 0.4));
  const corner = (n: number, radius: number): [number, number] => onCircle(50, 50, radius, (n * 360) / shares.length);
  const polygon = (radius: (share: Share) => number): string => shares.map((share, n) => corner(n, radius(share)).map((one) => one.toFixed(2)).join(",")).join(" ");
  const reach = (value: number): number => (40 * (Math.min(high, Math.max(low, value)) - low)) / (high - low || 1);
  const width = (number(settings["lineWidth"]) ?? 2) / 2.5;
  const dash = settings["lineType"] === "dashed" ? "3 2" : settings["lineType"] === "dotted" ? "0.8 1.2" : undefined;
  return (
    <>
      {[10, 20, 30, 40].map((radius) =>
        settings["shape"] === "circle" ? <circle key={radius} cx="50" cy="50" r={radius} fill="none" stroke={LINE} strokeWidth="0.4" /> : <polygon key={radius} points={polygon(() => radius)} fill="none" stroke={LINE} strokeWidth="0.4" />,
      )}
      {settings["axisShowTickLabels"] === true &&
        [1, 2, 3, 4].map((n) => (
          <text key={n} x="51" y={50 - n * 10 + 3} style={{ fontSize: 4.4, fontWeight: 400, textAnchor: "start", fill: fillOf(settings["axisTickLabelColor"], "var(--soft-text)"), ...lettersOf(settings, "axisTickLabelFont") }}>
            {short(low + ((high - low) * n) / 4)}
          </text>
        ))}
      <polygon points={polygon(({ value }) => reach(value))} fill={color} fillOpacity={opacity} stroke={settings["showLine"] === false ? "none" : color} strokeWidth={width} strokeDasharray={dash} />
      {shares.map((share, n) => {
        const [x, y] = corner(n, reach(share.value));
        const [nameX, nameY] = corner(n, 45);
        return (
          <g key={share.id}>
            {settings["showPoints"] !== false && (
              <path d={pointPath(settings["pointShape"], x, y, (number(settings["pointSize"]) ?? 4) / 2.5)} fill={color}>
                <Title words={words(share)} />
              </path>
            )}
            {settings["axisShowLabel"] !== false && (
              <text x={nameX} y={nameY + 1.5} style={{ fontSize: 4.8, fontWeight: 600, textAnchor: nameX > 51 ? "start" : nameX < 49 ? "end" : "middle", ...lettersOf(settings, "axisLabelFont") }}>
                {share.label}
              </text>
            )}
            {settings["showLabel"] === true && (
              <text x={x} y={settings["labelPosition"] === "bottom" ? y + 5 : y - 2.5} style={{ fontSize: 4.4, fontWeight: 400, fill: fillOf(settings["labelColor"], "currentColor"), ...lettersOf(settings, "labelFont") }}>
                {share.shown}
              </text>
            )}
          </g>
        );
      })}
    </>
  );
}
