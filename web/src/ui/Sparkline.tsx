// The recent course of one numeric value as a small line.

import type { ReactElement, Ref } from "react";
import { t } from "@/i18n";

const WIDTH = 120;
const HEIGHT = 28;

/** Returns the path of a line through values at equal distances; empty if fewer than two are numbers. */
export function linePath(values: number[], width: number, height: number): string {
  if (values.length < 2) {
    return "";
  }
  const low = Math.min(...values);
  const span = Math.max(...values) - low || 1;
  const step = width / (values.length - 1);
  const points = values.map((value, n) => `${(n * step).toFixed(1)} ${(height - 2 - ((value - low) / span) * (height - 4)).toFixed(1)}`);
  return `M${points.join("L")}`;
}

/** Returns the path of a sparkline; empty if fewer than two values are numbers. */
export const sparkline = (values: number[]): string => linePath(values.filter(Number.isFinite), WIDTH, HEIGHT);

/** Draws values as a line. Whoever draws it anew without the rest gets it as `line`. */
export function Sparkline({ values, line }: { values: number[]; line?: Ref<SVGPathElement> }): ReactElement | null {
  const path = sparkline(values);
  return path === "" ? null : (
    <svg width={WIDTH} height={HEIGHT} role="img" aria-label={t("The last {n} values", { n: values.length })}>
      <path ref={line ?? null} d={path} fill="none" stroke="var(--mantine-primary-color-filled)" strokeWidth={1.5} />
    </svg>
  );
}
