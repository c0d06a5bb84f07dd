// Where values are missing: stretches of a line that are left open, since nobody knows what was there.

import uPlot from "uplot";
import { number, type Json } from "@/dashboard/json";
import { lengthOf, type Grouping } from "@/dashboard/time/grouping";

/** What is left open: nothing, what lasts longer than usual, or longer than so many milliseconds. */
export type Openness = "usual" | number | undefined;
/** The moments between which a line is open. */
export type Gap = readonly [from: number, to: number];

/** How much longer than usual a step must be. Values that come a bit late are not missing, and where one of regular ones is, the step is twice as long. */
const LONGER = 1.8;
/** So many of all steps are usual ones. */
const USUAL_SHARE = 0.9;

/** Reads the setting, which is ours alone: ThingsBoard's charts connect all points, and so do those whose settings don't have it. */
export function readOpenness(settings: Json): Openness {
  const seconds = number(settings["lineGapSeconds"]) ?? 0;
  return settings["lineGaps"] === "usual" ? "usual" : settings["lineGaps"] === "after" && seconds > 0 ? seconds * 1_000 : undefined;
}

/** So many steps say what is usual; of a long series, which changes many times a second, others are left out. */
const SAMPLE = 2_000;

/** Returns the step between two points that most steps don't exceed. */
function usualStep(times: readonly number[]): number {
  const stride = Math.ceil(times.length / SAMPLE);
  const steps: number[] = [];
  for (let n = 1; n < times.length; n += stride) {
    steps.push((times[n] ?? 0) - (times[n - 1] ?? 0));
  }
  steps.sort((a, b) => a - b);
  return steps[Math.ceil(steps.length * USUAL_SHARE) - 1] ?? Infinity;
}

/** Returns the gaps between points. Where values are grouped, a group that follows another is never one. */
export function gapsOf(times: readonly number[], openness: Openness, grouping: Grouping | undefined): Gap[] {
  if (openness === undefined) {
    return [];
  }
  const group = grouping === undefined ? 0 : lengthOf(grouping) * LONGER;
  const most = Math.max(group, openness === "usual" ? usualStep(times) * LONGER : openness);
  return times.flatMap((to, n): Gap[] => {
    const from = times[n - 1] ?? to;
    return to - from > most ? [[from, to]] : [];
  });
}

/** Returns the points that have a gap, or nothing, on both sides: no line would show them. */
export function alone(times: readonly number[], gaps: readonly Gap[]): number[] {
  const [begins, ends] = [new Set(gaps.map(([from]) => from)), new Set(gaps.map(([, to]) => to))];
  return [...new Set([...begins, ...ends])].filter((ts) => (begins.has(ts) || ts === times.at(-1)) && (ends.has(ts) || ts === times[0]));
}

/** Returns the gaps as uPlot leaves them open, in pixels. */
export function openPixels(plot: uPlot, gaps: readonly Gap[]): [number, number][] {
  const { left, width } = plot.bbox;
  const pixel = (ts: number): number => plot.valToPos(ts / 1_000, "x", true);
  return gaps.map(([from, to]): [number, number] => [pixel(from), pixel(to)]).filter(([from, to]) => to > left && from < left + width);
}

/** Returns the stretches of a drawing that have no gap; nothing where there is none. */
export function clipOf(plot: uPlot, gaps: [number, number][]): Path2D | null {
  const { left, top, width, height } = plot.bbox;
  return uPlot.clipGaps(gaps, 0, left, top, width, height);
}

/** Returns where points lie in the columns of a drawing. */
export function placesOf(plot: uPlot, moments: readonly number[]): number[] {
  const times = plot.data[0];
  return moments.flatMap((ts) => {
    const at = plot.valToIdx(ts / 1_000);
    return times[at] === ts / 1_000 ? [at] : [];
  });
}
