// Where the wind comes from, on a dial, with its speed in the middle.

import type { ReactElement } from "react";
import { t } from "@/i18n";
import { begunWith } from "../beginnings";
import { chosen } from "../color";
import { inkOf, LETTERS } from "../gauge/digital";
import type { WidgetProps } from "../registry";
import { onCircle } from "../shapes";
import { useColor } from "../useColor";
import { singleOf } from "../values";
import { WIND } from "./settings";
import classes from "../gauge.module.css";

const DIRECTIONS = ["N", "NE", "E", "SE", "S", "SW", "W", "NW"];
const TICK = 3;

export default function Wind({ widget, sources }: WidgetProps): ReactElement {
  const direction = singleOf(widget, sources);
  const [first] = sources;
  const second = first?.source.dataKeys[1];
  const speed = first === undefined || second === undefined ? undefined : singleOf(widget, [{ ...first, source: { ...first.source, dataKeys: [second] } }]);
  const settings = begunWith(WIND, widget.settings);
  const value = speed?.value ?? direction.value;
  const middle = useColor(settings["centerValueColor"], value, "currentColor");
  const named = (name: string, theme: string): string => (settings[name] === WIND[name] ? undefined : chosen(settings[name])) ?? theme;
  // What is standard follows the theme.
  const [ticks, major] = [named("ticksColor", "var(--mantine-color-default-border)"), named("majorTicksColor", "currentColor")];
  const [minor, arrow] = [named("minorTicksColor", "var(--soft-text)"), named("arrowColor", "currentColor")];
  const every = settings["layout"] === "advanced" ? 45 : settings["layout"] === "simplified" ? 360 : 90;
  const hasNames = settings["directionalNamesElseDegrees"] !== false;
  const shown = speed?.text ?? (Number.isFinite(direction.value) ? `${Math.round(direction.value)}°` : "–");
  return (
    <figure className={classes["gauge"]}>
      <svg viewBox="0 0 100 100" role="img" aria-label={`${direction.label}: ${direction.text}${speed === undefined ? "" : `, ${speed.label}: ${speed.text}`}`} data-value={direction.text}>
        {Array.from({ length: 360 / TICK }, (_, n) => n * TICK).map((angle) => {
          const [isMajor, isMinor] = [angle % 90 === 0, angle % 45 === 0];
          const [[x1, y1], [x2, y2]] = [onCircle(50, 50, 40, angle), onCircle(50, 50, isMinor ? 36 : 38.5, angle)];
          return <line key={angle} x1={x1} y1={y1} x2={x2} y2={y2} stroke={isMajor ? major : isMinor ? minor : ticks} strokeWidth={isMinor ? 1 : 0.6} />;
        })}
        {every < 360 &&
          DIRECTIONS.map((name, n) => {
            const [x, y] = onCircle(50, 50, 45, n * 45);
            const isMajor = n % 2 === 0;
            return (n * 45) % every !== 0 ? null : (
              <text key={name} x={x} y={y + 2} className={classes["small"]} style={{ fill: isMajor ? major : minor, ...inkOf(settings, isMajor ? "majorTicksFont" : "minorTicksFont", 0.43) }}>
                {hasNames ? t(name) : n * 45}
              </text>
            );
          })}
        {Number.isFinite(direction.value) && (
          <g transform={`rotate(${direction.value} 50 50)`} data-direction={direction.value}>
            <path d="M 50 15 L 54 20.5 L 50.8 19.5 V 36 H 49.2 V 19.5 L 46 20.5 Z" fill={arrow} />
            <path d="M 49.2 64 V 82 H 48 V 84 H 52 V 82 H 50.8 V 64 Z" fill={arrow} />
          </g>
        )}
        <text x="50" y="53.5" className={classes["big"]} style={{ fontSize: 10, fill: middle, ...inkOf(settings, "centerValueFont", LETTERS.digital) }}>
          {shown}
        </text>
      </svg>
      <figcaption>{speed?.label ?? direction.label}</figcaption>
    </figure>
  );
}
