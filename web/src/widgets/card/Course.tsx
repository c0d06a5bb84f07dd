// The course of a value as a small line, as wide as its card.

import type { ReactElement } from "react";
import type { Point } from "@/dashboard/source";
import { t } from "@/i18n";
import classes from "./card.module.css";

const HEIGHT = 30;

/** Returns the least and the greatest of points. */
export function endsOf(points: readonly Point[]): [number, number] | undefined {
  const values = points.map(({ value }) => (value.trim() === "" ? NaN : Number(value))).filter(Number.isFinite);
  return values.length === 0 ? undefined : [values.reduce((a, b) => Math.min(a, b)), values.reduce((a, b) => Math.max(a, b))];
}

/** Returns the line through points in a box of 100 by 30, whose width is a stretch of time. */
export function coursePath(points: readonly Point[], [from, to]: [number, number]): string {
  const [low, high] = endsOf(points) ?? [0, 1];
  const shown = points.filter(({ value }) => value.trim() !== "" && Number.isFinite(Number(value)));
  const x = (ts: number): string => (Math.min(1, Math.max(0, (ts - from) / (to - from || 1))) * 100).toFixed(2);
  const y = (value: string): string => (HEIGHT - 2 - ((Number(value) - low) / (high - low || 1)) * (HEIGHT - 4)).toFixed(2);
  return shown.map(({ ts, value }, n) => `${n === 0 ? "M" : "L"}${x(ts)} ${y(value)}`).join("");
}

export function Course({ points, bounds, color, label, filled = true }: { points: readonly Point[]; bounds: [number, number]; color: string; label: string; filled?: boolean }): ReactElement {
  const inside = points.filter(({ ts }) => ts >= bounds[0]);
  const path = coursePath(inside, bounds);
  const ends = [...path.matchAll(/[ML]([\d.]+) /g)].map(([, x]) => x);
  return (
    <svg viewBox={`0 0 100 ${HEIGHT}`} preserveAspectRatio="none" className={classes["spark"]} role="img" aria-label={t("Course of {key}", { key: label })} data-points={inside.length}>
      {filled && ends.length > 1 && <path d={`${path}L${ends.at(-1)} ${HEIGHT}L${ends[0]} ${HEIGHT}Z`} fill={color} fillOpacity="0.12" />}
      <path d={path} fill="none" stroke={color} strokeWidth="2" vectorEffect="non-scaling-stroke" />
    </svg>
  );
}
