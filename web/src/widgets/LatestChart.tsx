// Shares of latest values: slices, rings, bars, petals or a net.

import type { ReactElement } from "react";
import { list, number, text } from "@/dashboard/model";
import { t } from "@/i18n";
import { EmptyState } from "@/ui/feedback";
import { PALETTE, safeColor } from "./color";
import type { WidgetProps } from "./registry";
import { onCircle, ringPath, slicesOf } from "./shapes";
import { readings } from "./values";
import { shownValue } from "./text";
import classes from "./latestChart.module.css";

export interface Share {
  label: string;
  value: number;
  shown: string;
  color: string;
}

function Slices({ shares, inner }: { shares: Share[]; inner: number }): ReactElement {
  const angles = slicesOf(shares.map(({ value }) => value));
  return (
    <>
      {shares.map((share, n) => {
        const [from, to] = angles[n] ?? [0, 0];
        return to > from ? (
          <path key={n} d={ringPath(50, 50, 46, inner, from, to)} fill={share.color} stroke="var(--mantine-color-body)" strokeWidth="0.6">
            <title>{`${share.label}: ${share.shown} (${Math.round((to - from) / 3.6)} %)`}</title>
          </path>
        ) : null;
      })}
      {inner > 0 && (
        <text x="50" y="54">
          {Number(shares.reduce((sum, { value }) => sum + Math.max(0, value), 0).toFixed(2))}
        </text>
      )}
    </>
  );
}

function Petals({ shares, most }: { shares: Share[]; most: number }): ReactElement {
  return (
    <>
      {shares.map((share, n) => (
        <path key={n} d={ringPath(50, 50, 46 * Math.sqrt(Math.max(0, share.value) / most), 0, (n * 360) / shares.length, ((n + 1) * 360) / shares.length)} fill={share.color} fillOpacity="0.75">
          <title>{`${share.label}: ${share.shown}`}</title>
        </path>
      ))}
    </>
  );
}

function Net({ shares, most }: { shares: Share[]; most: number }): ReactElement {
  const corner = (n: number, radius: number): string => onCircle(50, 50, radius, (n * 360) / shares.length).map((one) => one.toFixed(2)).join(",");
  const polygon = (radius: (share: Share) => number): string => shares.map((share, n) => corner(n, radius(share))).join(" ");
  return (
    <>
      {[11, 23, 34, 46].map((radius) => (
        <polygon key={radius} points={polygon(() => radius)} fill="none" stroke="var(--mantine-color-default-border)" strokeWidth="0.6" />
      ))}
      <polygon points={polygon(({ value }) => (46 * Math.max(0, value)) / most)} fill={shares[0]?.color ?? "#2196f3"} fillOpacity="0.35" stroke={shares[0]?.color ?? "#2196f3"} />
    </>
  );
}

function Columns({ shares, low, most }: { shares: Share[]; low: number; most: number }): ReactElement {
  const width = 96 / shares.length;
  const height = (value: number): number => (Math.min(most, Math.max(low, value)) - low) / (most - low || 1) * 88;
  return (
    <>
      {shares.map((share, n) => (
        <rect key={n} x={2 + n * width + width * 0.1} y={92 - height(share.value)} width={width * 0.8} height={height(share.value)} fill={share.color}>
          <title>{`${share.label}: ${share.shown}`}</title>
        </rect>
      ))}
      <line x1="2" x2="98" y1="92" y2="92" stroke="currentColor" strokeWidth="0.5" />
    </>
  );
}

export default function LatestChart({ widget, sources, entities }: WidgetProps): ReactElement {
  const { settings, fqn } = widget;
  const many = entities.length > 1;
  const shares = readings(sources).flatMap(({ entity, key, point }, n): Share[] => {
    const value = Number(point?.value);
    return point === undefined || !Number.isFinite(value)
      ? []
      : [{ label: many ? `${entity.name} · ${key.label}` : key.label, value, shown: shownValue(point.value, key), color: (many ? PALETTE[n % PALETTE.length] : safeColor(key.color)) ?? "#2196f3" }];
  });
  if (settings["sortSeries"] === true) {
    shares.sort((a, b) => b.value - a.value);
  }
  if (shares.length === 0) {
    return <EmptyState>{t("No numbers yet.")}</EmptyState>;
  }
  const most = number(settings["axisMax"]) ?? Math.max(...shares.map(({ value }) => value), Number.MIN_VALUE);
  // A net of one or two lines has no area to see.
  const named = ["doughnut", "polar", "radar", "bars"].find((one) => fqn.includes(one)) ?? "pie";
  const look = named === "radar" && shares.length < 3 ? "bars" : named;
  const side = text(settings["legendPosition"]) ?? (fqn.includes("horizontal") ? "right" : "bottom");
  const label = shares.map((share) => `${share.label} ${share.shown}`).join(", ");
  return (
    <div className={classes["chart"]} data-side={side} data-shares={list(shares).length}>
      <svg viewBox="0 0 100 100" role="img" aria-label={label} data-drawing>
        {(look === "pie" || look === "doughnut") && <Slices shares={shares} inner={look === "doughnut" ? 28 : 0} />}
        {look === "polar" && <Petals shares={shares} most={most} />}
        {look === "radar" && <Net shares={shares} most={most} />}
        {look === "bars" && <Columns shares={shares} low={number(settings["axisMin"]) ?? 0} most={most} />}
      </svg>
      {settings["showLegend"] !== false && (
        <ul>
          {shares.map((share, n) => (
            <li key={n}>
              <i style={{ background: share.color }} />
              {share.label} <b>{share.shown}</b>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
