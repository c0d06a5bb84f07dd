// Shares of latest values: slices, rings, bars, petals or a net, with a legend that hides and shows them.

import { useState, type ReactElement } from "react";
import { number, text, type Json } from "@/dashboard/json";
import { fontStyle } from "@/dashboard/look";
import { t } from "@/i18n";
import { EmptyState } from "@/ui/feedback";
import { PALETTE, chosen, paletteColor, safeColor } from "../color";
import type { WidgetProps } from "../registry";
import { readings } from "../values";
import { shownValue } from "../text";
import { useColor } from "../useColor";
import { useScheme } from "../useScheme";
import { latestSettings } from "./settings";
import { Columns, Net, Petals, Slices, type Share } from "./faces";
import classes from "./latestChart.module.css";

const LOOKS = ["doughnut", "polar", "radar", "bars"] as const;

/** Returns what a share is of the sum of all, in words. */
function percentOf(share: Share, sum: number, settings: Json): string {
  return `${Number(((sum === 0 ? 0 : share.value / sum) * 100).toFixed(number(settings["tooltipValueDecimals"]) ?? 0))} %`;
}

export default function LatestChart({ widget, sources, entities }: WidgetProps): ReactElement {
  const { fqn } = widget;
  const settings = latestSettings(fqn, widget.settings);
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set());
  const scheme = useScheme(widget);
  const many = entities.length > 1;
  const all = readings(sources).flatMap(({ entity, key, point }, n): Share[] => {
    const value = Number(point?.value);
    return point === undefined || point.value.trim() === "" || !Number.isFinite(value)
      ? []
      : [{ id: `${entity.id.id} ${key.label}`, label: many ? `${entity.name} · ${key.label}` : key.label, value, shown: shownValue(point.value, key), color: paletteColor((many ? PALETTE[n % PALETTE.length] : safeColor(key.color)) ?? PALETTE[0] ?? "#2196f3", scheme) }];
  });
  if (settings["sortSeries"] === true) {
    all.sort((a, b) => b.value - a.value);
  }
  const shares = all.filter(({ id }) => !hidden.has(id));
  const sum = shares.reduce((total, { value }) => total + Math.max(0, value), 0);
  const units = sources[0]?.source.dataKeys[0];
  const totalText = shownValue(String(Number(sum.toFixed(6))), { units: units?.units, decimals: units?.decimals ?? 2 });
  const totalColor = useColor(settings["totalValueColor"], sum, "var(--mantine-color-text)");
  if (all.length === 0) {
    return <EmptyState>{t("No numbers yet.")}</EmptyState>;
  }
  // A net of one or two lines has no area to see.
  const named = LOOKS.find((one) => fqn.includes(one)) ?? "pie";
  const look = named === "radar" && shares.length < 3 ? "bars" : named;
  const side = text(settings["legendPosition"]) ?? (fqn.includes("horizontal") ? "right" : "bottom");
  const label = shares.map((share) => `${share.label} ${share.shown}`).join(", ");
  const words = (share: Share): string => (settings["showTooltip"] === false ? "" : `${share.label}: ${settings["tooltipValueType"] === "absolute" ? share.shown : `${share.shown} (${percentOf(share, sum, settings)})`}`);
  const face = { shares, settings, words };
  const withTotal = settings["layout"] === "with_total" || settings["showTotal"] === true;
  const toggle = (id: string): void => setHidden(new Set(hidden.has(id) ? [...hidden].filter((one) => one !== id) : [...hidden, id]));
  const labelStyle = { ...fontStyle(settings["legendLabelFont"]), ...(chosen(settings["legendLabelColor"]) === undefined ? {} : { color: chosen(settings["legendLabelColor"]) }) };
  const valueStyle = { ...fontStyle(settings["legendValueFont"]), ...(chosen(settings["legendValueColor"]) === undefined ? {} : { color: chosen(settings["legendValueColor"]) }) };
  return (
    <div className={classes["chart"]} data-side={side} data-shares={shares.length}>
      <svg viewBox={look === "radar" || (look === "pie" && settings["showLabel"] !== false && settings["labelPosition"] !== "inside") ? "-25 -4 150 108" : "0 0 100 100"} role="img" aria-label={label}>
        {(look === "pie" || look === "doughnut") && <Slices {...face} ring={look === "doughnut"} total={withTotal ? { text: totalText, color: totalColor } : undefined} />}
        {look === "polar" && <Petals {...face} />}
        {look === "radar" && <Net {...face} />}
        {look === "bars" && <Columns {...face} />}
      </svg>
      {settings["showLegend"] !== false && (
        <ul>
          {all.map((share) => (
            <li key={share.id}>
              <button type="button" aria-pressed={!hidden.has(share.id)} onClick={() => toggle(share.id)} style={labelStyle}>
                <i style={{ background: share.color }} />
                {share.label}
              </button>{" "}
              <b style={valueStyle}>{share.shown}</b>
            </li>
          ))}
          {settings["legendShowTotal"] !== false && (
            <li data-total>
              <span style={labelStyle}>{t("Total")}</span> <b style={valueStyle}>{totalText}</b>
            </li>
          )}
        </ul>
      )}
    </div>
  );
}
