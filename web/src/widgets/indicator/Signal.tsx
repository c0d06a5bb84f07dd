// The strength of a radio signal in dBm: bars, or the waves of a transmitter.

import type { ReactElement } from "react";
import { number } from "@/dashboard/json";
import { begunWith } from "../beginnings";
import { ValueDate } from "../card/parts";
import { chosen } from "../color";
import type { WidgetProps } from "../registry";
import { ringPath } from "../shapes";
import { useColor } from "../useColor";
import { singleOf } from "../values";
import { SIGNAL } from "./settings";
import classes from "../gauge.module.css";

/** The strengths in dBm from which the second, third and fourth bar are lit; the first one is with any signal. */
const BARS = [-85, -70, -55];
const COUNT = 4;

/** Returns how many of four bars a strength lights. */
export function litBars(value: number, none: number): number {
  return value <= none || !Number.isFinite(value) ? 0 : 1 + BARS.filter((limit) => value >= limit).length;
}

/** The light grey of the standard follows the theme. */
const restOf = (color: unknown): string => (color === SIGNAL["inactiveBarsColor"] ? undefined : chosen(color)) ?? "var(--mantine-color-default-border)";

export default function Signal({ widget, sources }: WidgetProps): ReactElement {
  const single = singleOf(widget, sources);
  const settings = begunWith(SIGNAL, widget.settings);
  const lit = litBars(single.value, number(settings["noSignalRssiValue"]) ?? -100);
  const active = useColor(settings["activeBarsColor"], single.value, "#5cdf90");
  const rest = restOf(settings["inactiveBarsColor"]);
  const colorOf = (n: number): string => (n < lit ? active : rest);
  return (
    <figure className={classes["gauge"]}>
      <svg viewBox="0 0 100 80" role="img" aria-label={`${single.label}: ${single.text}`} data-value={single.text} data-lit={lit}>
        {settings["layout"] === "cellular_bar"
          ? Array.from({ length: COUNT }, (_, n) => <rect key={n} x={18 + n * 17} y={48 - n * 12} width="12" height={12 + n * 12} rx="2" fill={colorOf(n)} />)
          : Array.from({ length: COUNT }, (_, n) => (n === 0 ? <circle key={n} cx="50" cy="56" r="5" fill={colorOf(0)} /> : <path key={n} d={ringPath(50, 56, n * 14 + 5, n * 14 - 3, -45, 45)} fill={colorOf(n)} />))}
        <text x="50" y="77" className={classes["big"]}>
          {single.text}
        </text>
      </svg>
      <figcaption>{single.label}</figcaption>
      {settings["showDate"] === true && single.point !== undefined && (
        <figcaption>
          <ValueDate ts={single.point.ts} settings={settings} value={single.value} />
        </figcaption>
      )}
    </figure>
  );
}
