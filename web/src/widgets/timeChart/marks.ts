// What is drawn over the lines of a chart: thresholds with their ends and labels, the shapes of points, and values beside them.

import type uPlot from "uplot";
import { rootScale } from "@/ui/rootScale";
import type { Threshold } from "./thresholds";

/** A threshold whose value is known. */
export interface Mark {
  threshold: Threshold;
  value: number;
  text: string;
}

export interface Theme {
  text: string;
  soft: string;
  line: string;
  ground: string;
}

/** Draws a shape around a place, pointing to the right if it points. */
export function drawShape(ctx: CanvasRenderingContext2D, shape: string, x: number, y: number, size: number, color: string, ground: string): void {
  const half = size / 2;
  ctx.beginPath();
  switch (shape) {
    case "none":
      return;
    case "rect":
      ctx.rect(x - half, y - half, size, size);
      break;
    case "roundRect":
      ctx.roundRect(x - half, y - half, size, size, half / 2);
      break;
    case "triangle":
      ctx.moveTo(x, y - half);
      ctx.lineTo(x + half, y + half);
      ctx.lineTo(x - half, y + half);
      break;
    case "diamond":
      ctx.moveTo(x, y - half);
      ctx.lineTo(x + half, y);
      ctx.lineTo(x, y + half);
      ctx.lineTo(x - half, y);
      break;
    case "pin":
      ctx.moveTo(x, y);
      ctx.arc(x, y - size, half, Math.PI * 0.8, Math.PI * 0.2);
      break;
    case "arrow":
      ctx.moveTo(x + half, y);
      ctx.lineTo(x - half, y - half);
      ctx.lineTo(x - half / 2, y);
      ctx.lineTo(x - half, y + half);
      break;
    default:
      ctx.arc(x, y, half, 0, 2 * Math.PI);
  }
  ctx.closePath();
  ctx.fillStyle = shape === "emptyCircle" ? ground : color;
  ctx.fill();
  if (shape === "emptyCircle") {
    ctx.strokeStyle = color;
    ctx.lineWidth = devicePixelRatio * 1.5;
    ctx.stroke();
  }
}

function writeLabel(plot: uPlot, mark: Mark, y: number, theme: Theme): void {
  const { ctx, bbox } = plot;
  const { position, labelColor, labelBackground, color } = mark.threshold;
  const size = 12 * rootScale() * devicePixelRatio;
  const space = 4 * devicePixelRatio;
  ctx.font = `${size}px system-ui, sans-serif`;
  const width = ctx.measureText(mark.text).width;
  const right = bbox.left + bbox.width;
  const axisAtRight = ctx.canvas.width - right > 40 * devicePixelRatio;
  const axisAtLeft = bbox.left > 20 * devicePixelRatio;
  const place = /start/i.test(position) ? "start" : /middle/i.test(position) ? "middle" : "end";
  const inside = position.startsWith("inside") || (place === "end" && axisAtRight) || (place === "start" && axisAtLeft);
  // A label beside the drawing has no room there where an axis is, so that it moves in as far as it must.
  const x = place === "start" ? (inside ? bbox.left + space : Math.max(0, bbox.left - width - space)) : place === "middle" ? bbox.left + (bbox.width - width) / 2 : inside ? right - width - space : Math.min(right + space, ctx.canvas.width - width - 1);
  const raised = /Top$/.test(position) || (inside && !position.startsWith("inside")) || position === "middle" || (!inside && x < right && place === "end");
  const middle = raised ? y - size * 0.75 : /Bottom$/.test(position) ? y + size * 0.75 : y;
  if (labelBackground !== undefined) {
    ctx.fillStyle = labelBackground === "theme" ? theme.ground : labelBackground;
    ctx.globalAlpha = labelBackground === "theme" ? 0.7 : 1;
    ctx.fillRect(x - space / 2, middle - size * 0.65, width + space, size * 1.3);
    ctx.globalAlpha = 1;
  }
  ctx.fillStyle = labelColor ?? color ?? theme.text;
  ctx.textAlign = "left";
  ctx.textBaseline = "middle";
  ctx.fillText(mark.text, x, middle);
}

/** Draws the thresholds that are in view. */
export function drawMarks(plot: uPlot, marks: readonly Mark[], theme: Theme): void {
  const { ctx, bbox } = plot;
  for (const mark of marks) {
    const { threshold, value } = mark;
    const scale = plot.scales[`y ${threshold.axis}`];
    const { min, max } = scale ?? {};
    if (min === undefined || max === undefined || min === null || max === null || value < min || value > max) {
      continue;
    }
    const y = Math.round(plot.valToPos(value, `y ${threshold.axis}`, true));
    const color = threshold.color ?? theme.soft;
    const ratio = devicePixelRatio;
    ctx.save();
    ctx.beginPath();
    ctx.strokeStyle = color;
    ctx.lineWidth = threshold.width * ratio;
    ctx.setLineDash((threshold.dash ?? []).map((length) => length * ratio));
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
    ctx.setLineDash([]);
    drawShape(ctx, threshold.start, bbox.left, y, threshold.startSize * ratio, color, theme.ground);
    drawShape(ctx, threshold.end, bbox.left + bbox.width, y, threshold.endSize * ratio, color, theme.ground);
    if (threshold.label) {
      writeLabel(plot, mark, y, theme);
    }
    ctx.restore();
  }
}

/** Draws the points of a series that are in view as shapes, and their values if wanted. */
export function drawPoints(plot: uPlot, seriesIndex: number, look: { shape: string; size: number; shapes: boolean; labels: boolean; below: boolean }, color: string, theme: Theme, shown: (value: number) => string): void {
  const { ctx, bbox } = plot;
  const times = plot.data[0];
  const values = plot.data[seriesIndex] ?? [];
  const scale = plot.series[seriesIndex]?.scale ?? "y";
  const { min, max } = plot.scales["x"] ?? {};
  const size = look.size * devicePixelRatio;
  ctx.save();
  ctx.font = `${11 * rootScale() * devicePixelRatio}px system-ui, sans-serif`;
  ctx.textAlign = "center";
  ctx.textBaseline = look.below ? "top" : "bottom";
  let free = -Infinity;
  for (let at = 0; at < times.length; at++) {
    const [time, value] = [times[at] ?? 0, values[at]];
    if (value === null || value === undefined || time < (min ?? -Infinity) || time > (max ?? Infinity)) {
      continue;
    }
    const [x, y] = [plot.valToPos(time, "x", true), plot.valToPos(value, scale, true)];
    if (y < bbox.top - 1 || y > bbox.top + bbox.height + 1) {
      continue;
    }
    if (look.shapes) {
      drawShape(ctx, look.shape, x, y, size, color, theme.ground);
    }
    const words = look.labels ? shown(value) : "";
    const width = words === "" ? 0 : ctx.measureText(words).width;
    // Values that would lie on each other are left out.
    if (words !== "" && x - width / 2 > free) {
      ctx.fillStyle = theme.text;
      ctx.fillText(words, x, look.below ? y + size : y - size);
      free = x + width / 2;
    }
  }
  ctx.restore();
}
