// Bars: how wide they are, where they stand, and what they look like.

import type uPlot from "uplot";
import { rootScale } from "@/ui/rootScale";
import type { ChartSettings } from "./settings";

/** How the bars of one series stand beside those of others. */
export interface BarPlace {
  /** Which one it is of those that stand side by side. */
  index: number;
  count: number;
  /** The interval that a moment stands for; none where each value is drawn. */
  group: ((ts: number) => [number, number]) | undefined;
  /** The series that it is stacked on; none if it stands on the ground. */
  below: number | undefined;
  settings: ChartSettings["bars"];
}

/** Returns the moments between which a bar stands, in a window of a length. */
export function barSpan(ts: number, windowLength: number, { index, count, group, settings }: BarPlace): [number, number] {
  const { gap, intervalGap, relative, share, absolute } = settings;
  if (group !== undefined) {
    const [from, to] = group(ts);
    const width = (to - from) / (count + (count - 1) * gap + intervalGap);
    const left = from + (width * intervalGap) / 2 + index * width * (1 + gap);
    return [left, left + width];
  }
  const whole = relative ? share * windowLength : absolute;
  if (!settings.group) {
    return [ts - whole / 2, ts + whole / 2];
  }
  const width = whole / (count + (count - 1) * gap);
  const left = ts - whole / 2 + index * width * (1 + gap);
  return [left, left + width];
}

export interface BarBox {
  index: number;
  x: number;
  y: number;
  width: number;
  height: number;
}

/** Returns the boxes of the bars that are in view, in pixels of the canvas. */
export function barBoxes(plot: uPlot, seriesIndex: number, from: number, to: number, place: BarPlace): BarBox[] {
  const [times = [], ...columns] = plot.data;
  const values = columns[seriesIndex - 1] ?? [];
  const below = place.below === undefined ? undefined : columns[place.below - 1];
  const scale = plot.series[seriesIndex]?.scale ?? "y";
  const { min = 0, max = 1 } = plot.scales["x"] ?? {};
  const length = ((max ?? 1) - (min ?? 0)) * 1_000;
  const bottom = plot.scales[scale]?.min ?? 0;
  const top = plot.scales[scale]?.max ?? 1;
  const boxes: BarBox[] = [];
  for (let index = Math.max(0, from - 1); index <= Math.min(times.length - 1, to + 1); index++) {
    const value = values[index];
    if (value !== null && value !== undefined) {
      const [left, right] = barSpan((times[index] ?? 0) * 1_000, length, place);
      const x0 = plot.valToPos(left / 1_000, "x", true);
      const x1 = plot.valToPos(right / 1_000, "x", true);
      const base = Math.min(top, Math.max(bottom, below?.[index] ?? 0));
      const [y0, y1] = [plot.valToPos(base, scale, true), plot.valToPos(value, scale, true)];
      boxes.push({ index, x: x0, y: Math.min(y0, y1), width: Math.max(1, x1 - x0), height: Math.max(1, Math.abs(y1 - y0)) });
    }
  }
  return boxes;
}

/** Returns how uPlot draws the bars of a series. */
export function barPaths(place: BarPlace, radius: number, border: number): uPlot.Series.PathBuilder {
  return (plot, seriesIndex, from, to) => {
    const fill = new Path2D();
    const round = radius * devicePixelRatio;
    barBoxes(plot, seriesIndex, from, to, place).forEach(({ x, y, width, height }) => {
      if (round > 0) {
        fill.roundRect(x, y, width, height, [Math.min(round, width / 2), Math.min(round, width / 2), 0, 0]);
      } else {
        fill.rect(x, y, width, height);
      }
    });
    return { stroke: border > 0 ? fill : new Path2D(), fill };
  };
}

/** Writes what bars stand for along them: their names from the ground up, and their values. */
export function writeOnBars(plot: uPlot, seriesIndex: number, boxes: BarBox[], label: string, shown: (value: number) => string, what: { label: boolean; value: boolean }, color: string): void {
  const { ctx } = plot;
  const values = plot.data[seriesIndex] ?? [];
  const size = 12 * devicePixelRatio;
  ctx.save();
  ctx.beginPath();
  ctx.rect(plot.bbox.left, plot.bbox.top, plot.bbox.width, plot.bbox.height);
  ctx.clip();
  ctx.fillStyle = color;
  ctx.textAlign = "left";
  ctx.textBaseline = "middle";
  boxes.filter(({ width }) => width >= size * 0.9).forEach(({ index, x, y, width, height }) => {
    const value = values[index];
    const words = [what.label ? label : "", what.value && value !== null && value !== undefined ? shown(value) : ""].filter((one) => one !== "");
    ctx.save();
    ctx.translate(x + width / 2, y + height - size / 2);
    ctx.rotate(-Math.PI / 2);
    ctx.font = `${what.value ? 600 : 400} ${size}px system-ui, sans-serif`;
    ctx.fillText(words.join("  "), 0, 0);
    ctx.restore();
  });
  ctx.restore();
}

/** Writes the values of bars above them. */
export function writeAboveBars(plot: uPlot, seriesIndex: number, boxes: BarBox[], shown: (value: number) => string, color: string): void {
  const { ctx } = plot;
  const values = plot.data[seriesIndex] ?? [];
  ctx.save();
  ctx.fillStyle = color;
  ctx.textAlign = "center";
  ctx.textBaseline = "bottom";
  ctx.font = `${11 * rootScale() * devicePixelRatio}px system-ui, sans-serif`;
  boxes.forEach(({ index, x, y, width }) => {
    const value = values[index];
    if (value !== null && value !== undefined) {
      ctx.fillText(shown(value), x + width / 2, y - 2 * devicePixelRatio);
    }
  });
  ctx.restore();
}
