// The charge of a battery, as a battery that is filled or lit in parts.

import type { ReactElement } from "react";
import { number, text, type Json } from "@/dashboard/json";
import { begunWith } from "../beginnings";
import { inkOf, LETTERS } from "../gauge/digital";
import type { WidgetProps } from "../registry";
import { useColor } from "../useColor";
import { singleOf } from "../values";
import { BATTERY } from "./settings";
import classes from "../gauge.module.css";

/** Returns the parts of a battery from its low end to its high one, each with how far it is filled, from 0 to 1. */
export function cellsOf(charge: number, settings: Json): number[] {
  const share = Number.isFinite(charge) ? Math.min(100, Math.max(0, charge)) / 100 : 0;
  const count = Math.min(20, Math.max(2, Math.floor(number(settings["sectionsCount"]) ?? 4)));
  const lit = Math.ceil(share * count);
  return text(settings["layout"])?.endsWith("_divided") === true ? Array.from({ length: count }, (_, n) => (n < lit ? 1 : 0)) : [share];
}

export default function Battery({ widget, sources }: WidgetProps): ReactElement {
  const single = singleOf(widget, sources);
  const settings = begunWith(BATTERY, widget.settings);
  const level = useColor(settings["batteryLevelColor"], single.value, "#5cdf90");
  const shape = useColor(settings["batteryShapeColor"], single.value, "var(--mantine-color-default-border)");
  const color = useColor(settings["valueColor"], single.value, "currentColor");
  const cells = cellsOf(single.value, settings);
  const lies = text(settings["layout"])?.startsWith("horizontal") === true;
  const letters = settings["autoScaleValueSize"] === false ? inkOf(settings, "valueFont", LETTERS.digital) : {};
  // Upright, and turned over for one that lies.
  const length = 62 / cells.length;
  const gap = cells.length > 1 ? 1 : 0;
  return (
    <figure className={classes["gauge"]}>
      <svg viewBox="0 0 100 100" role="img" aria-label={`${single.label}: ${single.text}`} data-value={single.text}>
        <g transform={lies ? "rotate(90 50 42)" : undefined}>
          <rect x="42" y="3" width="16" height="6" rx="2" fill={shape} />
          <rect x="28" y="9" width="44" height="70" rx="6" fill={shape} />
          {cells.map((filled, n) => (
            <g key={n}>
              <rect x="32" y={75 - (n + 1) * length + gap} width="36" height={length - gap} rx="2" fill="var(--mantine-color-body)" opacity="0.6" />
              {filled > 0 && <rect x="32" y={75 - n * length - filled * (length - gap)} width="36" height={filled * (length - gap)} rx="2" fill={level} />}
            </g>
          ))}
        </g>
        {settings["showValue"] !== false && (
          <text x="50" y="96" className={classes["big"]} style={{ fill: color, ...letters }}>
            {single.text}
          </text>
        )}
      </svg>
      <figcaption>{single.label}</figcaption>
    </figure>
  );
}
