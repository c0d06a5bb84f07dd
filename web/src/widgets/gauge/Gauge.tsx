// A value on a dial, along a bar, in a thermometer or on a compass.

import { lazy, Suspense, type ReactElement } from "react";
import { number, text, type Json } from "@/dashboard/json";
import { PALETTE, paletteColor, rangeColor } from "../color";
import { datePattern } from "../dates";
import type { WidgetProps } from "../registry";
import { shownValue } from "../text";
import { useColor } from "../useColor";
import { useScheme } from "../useScheme";
import { scaleOf, singleOf } from "../values";
import { barColorOf, Lying, Ring } from "./digital";
import classes from "../gauge.module.css";

const Analogue = lazy(() => import("./analogue"));

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

export default function Gauge({ widget, sources }: WidgetProps): ReactElement {
  const single = singleOf(widget, sources);
  const { settings } = widget;
  const scale = scaleOf(settings);
  const look = lookOf(widget.fqn, settings);
  const isDigital = look === "arc" || look === "donut" || look === "horizontalBar" || look === "verticalBar";
  const keyColor = paletteColor(single.key?.color ?? PALETTE[0] ?? "#2196f3", useScheme(widget));
  const plain = useColor(isDigital ? barColorOf(settings, scale) : (settings["needleColor"] ?? settings["colorNeedle"]), single.value, keyColor);
  const color = (isDigital || look === "thermometer" ? rangeColor(settings["highlights"], single.value) : undefined) ?? plain;
  const key = { units: text(settings["units"]) ?? single.key?.units, decimals: number(settings["decimals"]) ?? number(settings["valueDec"]) ?? single.key?.decimals };
  const shown = single.point === undefined ? "–" : shownValue(single.point.value, key);
  const face = { shown, value: single.value, settings, scale, color };
  const title = text(settings["title"]) ?? (isDigital && settings["showUnitTitle"] !== false ? text(settings["unitTitle"]) : undefined) ?? single.label;
  return (
    <figure className={classes["gauge"]}>
      <svg viewBox="0 0 100 100" role="img" aria-label={`${title}: ${shown}`} data-value={shown} {...(isDigital && single.key !== undefined ? { style: { color: keyColor } } : {})}>
        {look === "arc" && <Ring {...face} whole={false} />}
        {look === "donut" && <Ring {...face} whole />}
        {look === "horizontalBar" && <Lying {...face} />}
        <Suspense>{look !== "arc" && look !== "donut" && look !== "horizontalBar" && <Analogue {...face} look={look} />}</Suspense>
      </svg>
      {settings["showTimestamp"] === true && single.point !== undefined && <figcaption>{datePattern(single.point.ts, text(settings["timestampFormat"]) ?? "yyyy-MM-dd HH:mm:ss")}</figcaption>}
      {settings["showTitle"] !== false && <figcaption>{title}</figcaption>}
    </figure>
  );
}
