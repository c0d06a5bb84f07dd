// A value on a dial, along a bar, in a thermometer or on a compass.

import type { ReactElement } from "react";
import { list, number, object, text, type Json } from "@/dashboard/model";
import { colorOf, rangeColor, safeColor } from "./color";
import type { WidgetProps } from "./registry";
import { onCircle, ringPath, ticksOf } from "./shapes";
import { scaleOf, shareOf, singleOf, type Single } from "./values";
import classes from "./gauge.module.css";

type Look = "arc" | "donut" | "needle" | "compass" | "thermometer" | "horizontalBar" | "verticalBar";

/** Returns how a gauge looks; the names of older types say it where the settings don't. */
export function lookOf(fqn: string, settings: Json): Look {
  const stored = ["arc", "donut", "horizontalBar", "verticalBar"] as const;
  const named: [RegExp, Look][] = [
    [/compass/, "compass"],
    [/thermometer|temperature_gauge/, "thermometer"],
    [/analogue|radial|speed_gauge/, "needle"],
    [/vertical_bar|lcd_bar/, "verticalBar"],
    [/horizontal_bar|digital_bar/, "horizontalBar"],
    [/simple_gauge|simple_neon/, "donut"],
  ];
  return stored.find((one) => one === settings["gaugeType"]) ?? named.find(([pattern]) => pattern.test(fqn))?.[1] ?? "arc";
}

interface FaceProps {
  single: Single;
  settings: Json;
  scale: [number, number];
  color: string;
}

/** A number as short as it can be read. */
const short = (value: number): string => String(Number(value.toPrecision(6)));

function Ring({ single, settings, scale, color, whole }: FaceProps & { whole: boolean }): ReactElement {
  const [start, sweep] = whole ? [0, 360] : [-120, 240];
  const end = start + sweep * shareOf(single.value, scale);
  const inner = 46 - 20 * Math.min(1, Math.max(0.2, number(settings["gaugeWidthScale"]) ?? 0.75)) * 0.8;
  return (
    <>
      <path d={ringPath(50, 50, 46, inner, start, start + sweep)} fill="var(--mantine-color-default-border)" />
      {end > start && <path d={ringPath(50, 50, 46, inner, start, end)} fill={color} />}
      <text x="50" y="54" className={classes["big"]}>
        {single.text}
      </text>
      {!whole && settings["showMinMax"] !== false && (
        <>
          <text x="18" y="86" className={classes["small"]}>
            {short(scale[0])}
          </text>
          <text x="82" y="86" className={classes["small"]}>
            {short(scale[1])}
          </text>
        </>
      )}
    </>
  );
}

function Needle({ single, settings, scale, color }: FaceProps): ReactElement {
  const sweep = number(settings["ticksAngle"]) ?? 270;
  const start = (number(settings["startAngle"]) ?? 45) - 180;
  const angle = (value: number): number => start + sweep * shareOf(value, scale);
  const [tipX, tipY] = onCircle(50, 50, 36, angle(single.value));
  return (
    <>
      <circle cx="50" cy="50" r="48" fill="none" stroke="var(--mantine-color-default-border)" strokeWidth="1.5" />
      {list(settings["highlights"]).map((value, n) => {
        const { from, to, color: own } = object(value);
        return <path key={n} d={ringPath(50, 50, 45, 41, angle(number(from) ?? scale[0]), angle(number(to) ?? scale[1]))} fill={safeColor(own) ?? "transparent"} />;
      })}
      {ticksOf(...scale, Math.min(12, number(settings["majorTicksCount"]) ?? 10)).map((tick) => {
        const [[x1, y1], [x2, y2], [x, y]] = [onCircle(50, 50, 45, angle(tick)), onCircle(50, 50, 40, angle(tick)), onCircle(50, 50, 33, angle(tick))];
        return (
          <g key={tick}>
            <line x1={x1} y1={y1} x2={x2} y2={y2} stroke="currentColor" strokeWidth="0.8" />
            <text x={x} y={y + 1.6} className={classes["tick"]}>
              {short(tick)}
            </text>
          </g>
        );
      })}
      {Number.isFinite(single.value) && <line x1="50" y1="50" x2={tipX} y2={tipY} stroke={color} strokeWidth="2" strokeLinecap="round" />}
      <circle cx="50" cy="50" r="3" fill={color} />
      <text x="50" y="76" className={classes["middle"]}>
        {single.text}
      </text>
    </>
  );
}

function Compass({ single, color }: FaceProps): ReactElement {
  return (
    <>
      <circle cx="50" cy="50" r="47" fill="none" stroke="var(--mantine-color-default-border)" strokeWidth="1.5" />
      {["N", "NE", "E", "SE", "S", "SW", "W", "NW"].map((name, n) => {
        const [x, y] = onCircle(50, 50, 39, n * 45);
        return (
          <text key={name} x={x} y={y + 2.5} className={n % 2 === 0 ? classes["middle"] : classes["small"]}>
            {name}
          </text>
        );
      })}
      <g transform={`rotate(${Number.isFinite(single.value) ? single.value : 0} 50 50)`}>
        <path d="M 50 20 L 55 50 L 45 50 Z" fill={color} />
        <path d="M 50 80 L 55 50 L 45 50 Z" fill="var(--mantine-color-dimmed)" />
      </g>
      <rect x="33" y="57" width="34" height="11" rx="2" fill="var(--mantine-color-body)" opacity="0.85" />
      <text x="50" y="65" className={classes["middle"]}>
        {single.text}
      </text>
    </>
  );
}

function Upright({ single, scale, color, bulb }: FaceProps & { bulb: boolean }): ReactElement {
  const height = 70 * shareOf(single.value, scale);
  return (
    <>
      <rect x="32" y="8" width="12" height="70" rx={bulb ? 6 : 2} fill="var(--mantine-color-default-border)" />
      <rect x="32" y={78 - height} width="12" height={height} rx={bulb ? 6 : 2} fill={color} />
      {bulb && <circle cx="38" cy="82" r="10" fill={color} />}
      {ticksOf(...scale, 5).map((tick) => (
        <text key={tick} x="48" y={80 - 70 * shareOf(tick, scale)} className={classes["side"]}>
          {short(tick)}
        </text>
      ))}
      <text x="50" y="99" className={classes["middle"]}>
        {single.text}
      </text>
    </>
  );
}

function Lying({ single, scale, color }: FaceProps): ReactElement {
  return (
    <>
      <text x="50" y="38" className={classes["big"]}>
        {single.text}
      </text>
      <rect x="5" y="48" width="90" height="14" rx="2" fill="var(--mantine-color-default-border)" />
      <rect x="5" y="48" width={90 * shareOf(single.value, scale)} height="14" rx="2" fill={color} />
      <text x="5" y="71" className={classes["side"]}>
        {short(scale[0])}
      </text>
      <text x="95" y="71" className={classes["end"]}>
        {short(scale[1])}
      </text>
    </>
  );
}

export default function Gauge({ widget, sources }: WidgetProps): ReactElement {
  const single = singleOf(widget, sources);
  const { settings } = widget;
  const scale = scaleOf(settings);
  const color = rangeColor(settings["highlights"], single.value) ?? colorOf(settings["barColor"] ?? settings["needleColor"] ?? settings["colorNeedle"], single.value, single.key?.color ?? "#2196f3");
  const face = { single, settings, scale, color };
  const look = lookOf(widget.fqn, settings);
  const title = text(settings["title"]) ?? text(settings["unitTitle"]) ?? single.label;
  return (
    <figure className={classes["gauge"]}>
      <svg viewBox="0 0 100 100" role="img" aria-label={`${title}: ${single.text}`} data-value={single.text} data-drawing>
        {look === "arc" && <Ring {...face} whole={false} />}
        {look === "donut" && <Ring {...face} whole />}
        {look === "needle" && <Needle {...face} />}
        {look === "compass" && <Compass {...face} />}
        {(look === "thermometer" || look === "verticalBar") && <Upright {...face} bulb={look === "thermometer"} />}
        {look === "horizontalBar" && <Lying {...face} />}
      </svg>
      {settings["showTitle"] !== false && <figcaption>{title}</figcaption>}
    </figure>
  );
}
