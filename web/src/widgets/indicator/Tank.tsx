// A liquid in a tank, as its level.

import { useId, type ReactElement } from "react";
import { number, text, type Json } from "@/dashboard/json";
import { formatNumber, t } from "@/i18n";
import { begunWith } from "../beginnings";
import { chosen, inkColor } from "../color";
import { inkOf, LETTERS } from "../gauge/digital";
import type { WidgetProps } from "../registry";
import { useColor } from "../useColor";
import { singleOf } from "../values";
import { PER_LITRE, SHAPES, TANK, type TankShape } from "./settings";
import classes from "../gauge.module.css";

/** Returns litres of an amount in a unit. */
const litres = (amount: number, unit: string): number => amount / (PER_LITRE[unit] ?? 1);

/** Returns the filled share of a tank: of the percentage that is measured, or of its volume. */
export function fillShare(value: number, settings: Json): number {
  const [unit, volume] = [text(settings["datasourceUnits"]) ?? "%", number(settings["volumeConstant"]) ?? 0];
  const whole = litres(volume, text(settings["volumeUnits"]) ?? "L");
  const share = unit === "%" || whole <= 0 ? value / 100 : litres(value, unit) / whole;
  return Number.isFinite(share) ? Math.min(1, Math.max(0, share)) : 0;
}

/** Returns how much a share of a tank is in a unit: a percentage, or that part of its volume. */
export function amountIn(share: number, unit: string, settings: Json): number {
  const whole = litres(number(settings["volumeConstant"]) ?? 0, text(settings["volumeUnits"]) ?? "L");
  return unit === "%" ? share * 100 : share * whole * (PER_LITRE[unit] ?? 1);
}

/** Returns the shape of a tank; the name of the type says it where settings don't. */
export function shapeOf(fqn: string, settings: Json): TankShape {
  const words = (name: string): string => name.toLowerCase().replace(/[^a-z0-9]+/g, "_");
  return SHAPES.find(({ value }) => value === settings["selectedShape"]) ?? SHAPES.find(({ value }) => fqn.includes(words(value))) ?? SHAPES[0];
}

export default function Tank({ widget, sources }: WidgetProps): ReactElement {
  const single = singleOf(widget, sources);
  const clip = useId();
  const settings = begunWith(TANK, widget.settings);
  const share = fillShare(single.value, settings);
  const percent = Number.isFinite(single.value) ? share * 100 : single.value;
  const unit = text(settings["units"]) ?? "%";
  const amount = settings["layout"] === "absolute" ? amountIn(share, unit, settings) : percent;
  const round = (value: number): string => formatNumber(Number(value.toFixed(Math.min(15, Math.max(0, number(settings["decimals"]) ?? 0)))));
  const { outline, top, bottom } = shapeOf(widget.fqn, settings);
  const colors = {
    tank: useColor(settings["tankColor"], percent, "currentColor"),
    liquid: useColor(settings["liquidColor"], percent, "#7a8bff"),
    value: useColor(settings["valueColor"], amount, "currentColor"),
    ground: useColor(settings["backgroundOverlayColor"], percent, "var(--mantine-color-body)"),
  };
  const withVolume = settings["layout"] === "absolute" && unit !== "%";
  const label = Number.isFinite(single.value) ? `${round(amount)} ${settings["layout"] === "absolute" ? unit : "%"}` : "–";
  return (
    <figure className={classes["gauge"]}>
      <svg viewBox="0 0 100 100" role="img" aria-label={`${single.label}: ${label}`} data-value={single.text} data-share={share}>
        <clipPath id={clip}>
          <path d={outline} />
        </clipPath>
        <rect x="0" y={bottom - (bottom - top) * share} width="100" height="100" fill={colors.liquid} clipPath={`url(#${clip})`} />
        <path d={outline} fill="none" style={{ stroke: inkColor(colors.tank) }} strokeWidth="1.5" />
        {settings["layout"] !== "simple" && (
          <>
            {settings["showBackgroundOverlay"] !== false && <rect x="27" y="42" width="46" height={withVolume ? 22 : 16} rx="3" style={{ fill: colors.ground }} opacity={colors.ground.startsWith("var") ? 0.85 : 1} />}
            <text x="50" y="53" className={classes["middle"]} style={{ fill: colors.value, ...inkOf(settings, "valueFont", LETTERS.digital * 0.83) }}>
              {label}
            </text>
            {withVolume && (
              <text x="50" y="61.5" className={classes["small"]} style={{ fill: chosen(settings["volumeColor"]) ?? "var(--soft-text)", ...inkOf(settings, "volumeFont", LETTERS.digital) }}>
                {t("of {volume}", { volume: `${round(amountIn(1, unit, settings))} ${unit}` })}
              </text>
            )}
          </>
        )}
      </svg>
      <figcaption>{single.label}</figcaption>
    </figure>
  );
}
