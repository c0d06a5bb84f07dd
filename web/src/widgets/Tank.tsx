// A liquid in a tank, as its level.

import { useId, type ReactElement } from "react";
import { number, text } from "@/dashboard/model";
import { colorOf } from "./color";
import type { WidgetProps } from "./registry";
import { singleOf } from "./values";
import classes from "./gauge.module.css";

const OUTLINES: [RegExp, string][] = [
  [/spher/i, "M 50 8 A 40 40 0 1 1 49.9 8 Z"],
  [/rectang|cube/i, "M 15 10 H 85 V 88 H 15 Z"],
  [/horizontal/i, "M 22 25 H 78 C 98 25 98 75 78 75 H 22 C 2 75 2 25 22 25 Z"],
  [/conic|cone/i, "M 15 10 H 85 L 60 88 H 40 Z"],
  [/^/, "M 22 16 C 22 6 78 6 78 16 V 82 C 78 92 22 92 22 82 Z"],
];

/** Returns the filled share of a tank: of the percentage that is measured, or of its volume. */
export function fillShare(value: number, units: string | undefined, volume: number | undefined): number {
  const share = units === undefined || units === "%" || volume === undefined || volume <= 0 ? value / 100 : value / volume;
  return Number.isFinite(share) ? Math.min(1, Math.max(0, share)) : 0;
}

export default function Tank({ widget, sources }: WidgetProps): ReactElement {
  const single = singleOf(widget, sources);
  const clip = useId();
  const { settings } = widget;
  const share = fillShare(single.value, text(settings["datasourceUnits"]), number(settings["volumeConstant"]));
  const shape = `${text(settings["selectedShape"]) ?? ""} ${widget.fqn}`;
  const outline = OUTLINES.find(([pattern]) => pattern.test(shape))?.[1] ?? "";
  const color = colorOf(settings["liquidColor"], share * 100, "#7a8bff");
  const label = settings["layout"] === "absolute" ? single.text : `${Math.round(share * 100)} %`;
  return (
    <figure className={classes["gauge"]}>
      <svg viewBox="0 0 100 100" role="img" aria-label={`${single.label}: ${label}`} data-value={single.text} data-share={share} data-drawing>
        <clipPath id={clip}>
          <path d={outline} />
        </clipPath>
        <rect x="0" y={92 - 84 * share} width="100" height="100" fill={color} clipPath={`url(#${clip})`} />
        <path d={outline} fill="none" stroke="currentColor" strokeWidth="1.5" />
        {settings["layout"] !== "simple" && (
          <>
            <rect x="30" y="44" width="40" height="15" rx="3" fill="var(--mantine-color-body)" opacity="0.85" />
            <text x="50" y="54.5" className={classes["middle"]}>
              {Number.isFinite(single.value) ? label : "–"}
            </text>
          </>
        )}
      </svg>
      <figcaption>{single.label}</figcaption>
    </figure>
  );
}
