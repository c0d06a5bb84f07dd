// The course of a number, small enough for a card, such as that of a share over the last hour.

import { Text } from "@mantine/core";
import type { ReactElement } from "react";
import { formatNumber, t } from "@/i18n";

const WIDTH = 240;
const HEIGHT = 60;

interface Point {
  ts: number;
  value: number;
}

/** Places points in a box in which the bottom is 0. */
export function pathOf(points: readonly Point[], width: number, height: number, top = 100): string {
  const first = points[0]?.ts ?? 0;
  const span = Math.max(1, (points.at(-1)?.ts ?? 0) - first);
  return points
    .map(({ ts, value }, n) => `${n === 0 ? "M" : "L"}${((width * (ts - first)) / span).toFixed(1)},${(height - (height * Math.min(top, Math.max(0, value))) / top).toFixed(1)}`)
    .join("");
}

interface CourseProps {
  points: readonly Point[];
  /** What the height of the box stands for. */
  top: number;
  /** What it says to whoever doesn't see it. */
  label: string;
  caption: string;
}

export function Course({ points, top, label, caption }: CourseProps): ReactElement {
  const path = pathOf(points, WIDTH, HEIGHT, top);
  return (
    <>
      <svg role="img" aria-label={label} viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" width="100%" height={HEIGHT}>
        <path d={`${path}L${WIDTH},${HEIGHT}L0,${HEIGHT}Z`} fill="var(--mantine-color-anchor)" opacity={0.15} />
        <path d={path} fill="none" stroke="var(--mantine-color-anchor)" strokeWidth={2} vectorEffect="non-scaling-stroke" />
      </svg>
      <Text size="xs" c="var(--soft-text)">
        {caption}
      </Text>
    </>
  );
}

export function PercentChart({ label, points }: { label: string; points: readonly Point[] }): ReactElement {
  if (points.length < 2) {
    return (
      <Text size="xs" c="var(--soft-text)">
        {t("Its course appears here, a point each minute.")}
      </Text>
    );
  }
  const numbers = points.map(({ value }) => value);
  const [least, most] = [Math.min(...numbers), Math.max(...numbers)].map((n) => formatNumber(n, { maximumFractionDigits: 0 }));
  const text = t("{label} in the last hour: between {least} % and {most} %", { label, least: least ?? "", most: most ?? "" });
  return <Course points={points} top={100} label={text} caption={t("{least} to {most} % in the last hour", { least: least ?? "", most: most ?? "" })} />;
}
