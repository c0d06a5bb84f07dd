// How uPlot draws a chart: scales, axes, lines, bars, and what lies over them.

import uPlot from "uplot";
import { rootScale } from "@/ui/rootScale";
import { barBoxes, barPaths, writeAboveBars, writeOnBars, type BarPlace } from "./bars";
import type { SandboxedTexts } from "./functions";
import { clipOf, openPixels, placesOf, type Gap } from "./gaps";
import { drawMarks, drawPoints, type Mark, type Theme } from "./marks";
import { rangeOf, stateRange, timeTicks, type Limits } from "./scales";
import type { Series } from "./series";
import type { Axis } from "./axes";
import type { Fill } from "./keyLook";
import type { ChartSettings } from "./settings";
import type { Band } from "./thresholds";
import { shownValue } from "../text";

/** What a chart looks at while it is drawn, and what changes without making it anew. */
export interface Moving {
  range: () => [number, number];
  marks: () => readonly Mark[];
  limits: () => ReadonlyMap<string, Limits>;
  /** Where the line of a series is open, and its points that no line shows. */
  open: (n: number) => { gaps: readonly Gap[]; alone: readonly number[] };
  group: ((ts: number) => [number, number]) | undefined;
}

export interface Drawing {
  settings: ChartSettings;
  series: readonly Series[];
  theme: Theme;
  zone: string | undefined;
  texts: SandboxedTexts;
  moving: Moving;
  syncKey: string;
  zoomed: (from: number, to: number) => void;
}

const mixed = (color: string, share: number): string => `color-mix(in srgb, ${color} ${Math.round(share * 100)}%, transparent)`;

/** Returns a stroke that has the colour of the band that it runs through. */
function bandGradient(plot: uPlot, scale: string, bands: readonly Band[], outside: string, share: number): CanvasGradient | string {
  const { min, max } = plot.scales[scale] ?? {};
  if (min === undefined || max === undefined || min === null || max === null || max <= min) {
    return outside;
  }
  const [y0, y1] = [plot.valToPos(min, scale, true), plot.valToPos(max, scale, true)];
  const gradient = plot.ctx.createLinearGradient(0, y0, 0, y1);
  const place = (value: number): number => Math.min(1, Math.max(0, (value - min) / (max - min)));
  const color = (one: string): string => (share === 1 ? one : mixed(one, share));
  let at = 0;
  for (const band of bands) {
    const [from, to] = [Math.max(at, place(band.from ?? min)), place(band.to ?? max)];
    if (to > from) {
      [[at, outside], [from, outside], [from, band.color], [to, band.color]].forEach(([stop, one]) => gradient.addColorStop(Number(stop), color(String(one))));
      at = to;
    }
  }
  gradient.addColorStop(at, color(outside));
  gradient.addColorStop(1, color(outside));
  return gradient;
}

function fillOf(fill: Fill, color: string): uPlot.Series.Fill | undefined {
  if (fill.type === "none") {
    return undefined;
  }
  if (fill.type === "opacity") {
    return mixed(color, fill.opacity);
  }
  return (plot) => {
    const { top, height } = plot.bbox;
    const gradient = plot.ctx.createLinearGradient(0, top, 0, top + height);
    gradient.addColorStop(0, mixed(color, fill.start));
    gradient.addColorStop(1, mixed(color, fill.end));
    return gradient;
  };
}

/** Draws steps whose edges lie halfway between points. */
const middleSteps = (open: Moving["open"]): uPlot.Series.PathBuilder => (plot, seriesIndex, from, to) => {
  const stroke = new Path2D();
  const [times, values, scale] = [plot.data[0], plot.data[seriesIndex] ?? [], plot.series[seriesIndex]?.scale ?? "y"];
  let last: [number, number] | undefined;
  for (let at = from; at <= to; at++) {
    const value = values[at];
    if (value !== null && value !== undefined) {
      const [x, y] = [plot.valToPos(times[at] ?? 0, "x", true), plot.valToPos(value, scale, true)];
      if (last === undefined) {
        stroke.moveTo(x, y);
      } else {
        stroke.lineTo((last[0] + x) / 2, last[1]);
        stroke.lineTo((last[0] + x) / 2, y);
        stroke.lineTo(x, y);
      }
      last = [x, y];
    }
  }
  const gaps = openPixels(plot, open(seriesIndex - 1).gaps);
  return { stroke, gaps, clip: clipOf(plot, gaps) };
};

function pathsOf(one: Series, place: BarPlace, { open }: Moving): uPlot.Series.PathBuilder | undefined {
  const { look } = one;
  if (look.bars) {
    return barPaths(place, look.bar.radius, look.bar.border);
  }
  const { step, smooth, show } = look.line;
  if (!show) {
    return () => null;
  }
  return step === "middle" ? middleSteps(open) : step !== undefined ? uPlot.paths.stepped?.({ align: step === "end" ? 1 : -1 }) : smooth ? uPlot.paths.spline?.() : uPlot.paths.linear?.();
}

/** Returns how bars of each series stand, side by side or on each other. */
export function barPlaces(series: readonly Series[], settings: ChartSettings, group: BarPlace["group"]): BarPlace[] {
  const bars = series.filter((one) => one.look.bars && one.edge === undefined);
  const count = settings.stack ? 1 : Math.max(1, bars.length);
  return series.map((one, n) => {
    const beneath = series.findLastIndex((other, at) => at < n && other.look.bars && other.look.axis === one.look.axis);
    return { index: settings.stack ? 0 : Math.max(0, bars.indexOf(one)), count, group, below: settings.stack && beneath >= 0 ? beneath + 1 : undefined, settings: settings.bars };
  });
}

const filled = (places: number[]): number[] | null => (places.length === 0 ? null : places);

function seriesOptions(one: Series, place: BarPlace, { settings, moving }: Drawing): uPlot.Series {
  const { look, color } = one;
  const scale = `y ${look.axis}`;
  // A column lacks what other series have; that is no gap.
  const open: Pick<uPlot.Series, "spanGaps" | "gaps"> = settings.gaps === undefined || look.bars ? { spanGaps: true } : { spanGaps: false, gaps: (plot, n) => openPixels(plot, moving.open(n - 1).gaps) };
  if (one.edge !== undefined) {
    // Only what lies between two edges is drawn.
    return { label: one.label, scale, ...open, width: 0, points: { show: false } };
  }
  const isPlain = !look.bars && look.line.show && !look.line.points;
  const bands = settings.bands;
  const paths = pathsOf(one, place, moving);
  const fill = look.bars ? (fillOf(look.bar.fill, color) ?? color) : bands !== undefined && look.line.fill.type !== "none" ? (plot: uPlot) => bandGradient(plot, scale, bands, settings.outside, look.line.fill.opacity) : fillOf(look.line.fill, color);
  return {
    label: one.label,
    scale,
    ...open,
    width: look.bars ? look.bar.border : look.line.width,
    stroke: bands === undefined ? color : (plot) => bandGradient(plot, scale, bands, settings.outside, 1),
    ...(fill === undefined ? {} : { fill }),
    ...(look.line.dash === undefined || look.bars ? {} : { dash: look.line.dash }),
    ...(paths === undefined ? {} : { paths }),
    // A line of one point can't be seen, so that the point is.
    points: { show: (_plot, _n, from, to) => isPlain && to - from < 1, filter: (plot, n, all) => (all || !isPlain ? null : filled(placesOf(plot, moving.open(n - 1).alone))), size: Math.max(5, look.line.width * 2.5), fill: color, stroke: color },
  };
}

const SIDES = { top: 0, right: 1, bottom: 2, left: 3 } as const;

function axisLook(axis: Axis, theme: Theme): uPlot.Axis {
  return {
    show: axis.show,
    side: SIDES[axis.side],
    stroke: axis.colors.tickLabel ?? theme.soft,
    font: axis.fonts.tickLabel,
    labelFont: axis.fonts.label,
    grid: { show: axis.splits, stroke: axis.colors.splits ?? theme.line, width: 1 },
    ticks: { show: axis.ticks, stroke: theme.line, width: 1, size: 5 },
    border: { show: axis.line, stroke: theme.line, width: 1 },
    ...(axis.label === "" ? {} : { label: axis.label, labelSize: 18 * rootScale(), labelGap: 2 }),
  };
}

function valueAxis(axis: Axis, { settings, theme, texts }: Drawing): uPlot.Axis {
  const states = settings.states;
  const shown = (value: number): string => {
    const state = states.find((one) => one.value === value);
    if (state !== undefined) {
      return state.label;
    }
    const own = axis.formatter === undefined ? undefined : texts.text(axis.formatter, ["value"], [value]);
    return own ?? shownValue(String(Number(value.toPrecision(12))), { units: axis.units, decimals: axis.decimals });
  };
  const finest = axis.decimals === undefined ? undefined : 10 ** -axis.decimals;
  const steps = finest === undefined ? undefined : Array.from({ length: 60 }, (_, n) => Number(((n % 3 === 2 ? 5 : (n % 3) + 1) * 10 ** (Math.floor(n / 3) - 4)).toPrecision(3))).filter((one) => one >= finest * 0.999);
  const incrs = axis.interval === undefined ? steps : [axis.interval];
  const plain = axisLook(axis, theme);
  const generator = axis.generator;
  return {
    ...plain,
    scale: `y ${axis.id}`,
    values: (_plot, splits) => splits.map((value) => (axis.labels ? shown(value) : "")),
    size: (_plot, values) => (axis.show ? 12 + Math.max(0, ...(values ?? []).map((value) => value.length)) * axis.tickSize * 0.58 + (axis.ticks ? 5 : 0) : 0),
    ...(incrs === undefined || incrs.length === 0 ? {} : { incrs }),
    ...(axis.splitNumber === undefined ? {} : { space: (plot: uPlot) => plot.bbox.height / devicePixelRatio / Math.max(1, axis.splitNumber ?? 1) }),
    ...(states.length > 0 ? { splits: () => states.map(({ value }) => value) } : {}),
    ...(generator === undefined
      ? {}
      : {
          splits: (_plot, _axis, low, high, step) => {
            const made = texts.result(generator, ["extent", "interval", "niceTickExtent", "intervalPrecision"], [[low, high], step, [low, high], 2]);
            const own = Array.isArray(made) ? made.map((tick) => Number((tick as { value?: unknown } | null)?.value)).filter((value) => value >= low && value <= high) : [];
            return own.length > 0 ? own : Array.from({ length: Math.max(0, Math.floor(high / step) - Math.ceil(low / step) + 1) }, (_, n) => (Math.ceil(low / step) + n) * step);
          },
        }),
  };
}

function timeAxis(axis: Axis, { settings, theme, zone }: Drawing, shift: number): uPlot.Axis {
  return {
    ...axisLook(axis, theme),
    scale: "x",
    space: 64 * rootScale(),
    size: axis.show ? 30 * rootScale() : 0,
    values: (_plot, splits, _axis, _space, step) => (axis.labels ? timeTicks(splits.map((at) => at - shift / 1_000), step, settings.timeFormats, zone) : splits.map(() => "")),
  };
}

function drawGround(plot: uPlot, { settings }: Drawing): void {
  const { background, border, borderColor, show } = settings.grid;
  const { ctx, bbox } = plot;
  if (!show) {
    return;
  }
  ctx.save();
  if (background !== undefined) {
    ctx.fillStyle = background;
    ctx.fillRect(bbox.left, bbox.top, bbox.width, bbox.height);
  }
  ctx.strokeStyle = borderColor ?? "#8888";
  ctx.lineWidth = border * devicePixelRatio;
  ctx.strokeRect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.restore();
}

function drawOver(plot: uPlot, n: number, one: Series, place: BarPlace, { settings, theme }: Drawing): void {
  const { look } = one;
  const shown = (value: number): string => shownValue(String(value), one.key);
  if (plot.series[n]?.show !== true) {
    return;
  }
  if (look.bars && (settings.barText.label || settings.barText.value || look.bar.labels)) {
    const [from = 0, to = 0] = plot.series[n]?.idxs ?? [];
    const boxes = barBoxes(plot, n, from, to, place);
    if (look.bar.labels) {
      writeAboveBars(plot, n, boxes, shown, theme.text);
    }
    writeOnBars(plot, n, boxes, one.label, shown, settings.barText, theme.text);
  }
  if (!look.bars && (look.line.points || look.line.pointLabels)) {
    drawPoints(plot, n, { shape: look.line.shape, size: look.line.size, shapes: look.line.points, labels: look.line.pointLabels, below: look.line.labelBelow }, one.color, theme, shown);
  }
}

/** Returns the bands between the least and the greatest values of each series. */
function edgeBands(series: readonly Series[]): uPlot.Band[] {
  return series.flatMap(({ edge, color }, n): uPlot.Band[] => {
    const below = edge?.which === "greatest" ? series.findIndex((one) => one.edge?.which === "least" && one.edge.of === edge.of) : -1;
    return below < 0 ? [] : [{ series: [n + 1, below + 1], fill: mixed(color, 0.2) }];
  });
}

/** Returns the options of a chart of this size. */
export function optionsOf(drawing: Drawing, width: number, height: number): uPlot.Options {
  const { settings, series, theme, moving, zone } = drawing;
  const places = barPlaces(series, settings, moving.group);
  const compared = series.find((one) => one.shift !== undefined)?.shift;
  const known = new Set(settings.axes.map(({ id }) => id));
  // A key may name an axis that isn't there any more; it is drawn on the first one.
  const first = settings.axes[0]?.id ?? "default";
  const drawn = series.map((one): Series => (known.has(one.look.axis) ? one : { ...one, look: { ...one.look, axis: first } }));
  const scaleOf = (axis: Axis): uPlot.Scale => ({
    range: (_plot, low, high) => {
      const own = drawn.filter((one) => one.look.axis === axis.id);
      const limits = moving.limits().get(axis.id) ?? { min: undefined, max: undefined };
      if (settings.states.length > 0) {
        const [bottom, top] = stateRange(settings);
        return [limits.min ?? bottom, limits.max ?? top];
      }
      const marks = settings.kind === "range" ? [] : moving.marks().flatMap(({ threshold, value }) => (threshold.axis === axis.id ? [value] : []));
      return rangeOf(low, high, limits, marks, own.some((one) => one.look.bars) || (settings.stack && own.length > 0));
    },
  });
  const isLine = (one: Series | undefined): boolean => one?.edge === undefined && one?.look.bars === false;
  const stackedLines = settings.stack ? drawn.map((one, n) => [n, drawn.findLastIndex((other, at) => at < n && isLine(other) && other.look.axis === one.look.axis)] as const).filter(([n, below]) => below >= 0 && isLine(drawn[n])) : [];
  return {
    width,
    height,
    ...(zone === undefined ? {} : { tzDate: (seconds: number) => uPlot.tzDate(new Date(seconds * 1_000), zone) }),
    legend: { show: false },
    padding: [10, settings.axes.some((axis) => axis.show && axis.side === "right") ? 0 : 20, 0, settings.axes.some((axis) => axis.show && axis.side !== "right") ? 0 : 8],
    scales: { x: { time: true, range: () => { const [from, to] = moving.range(); return [from / 1_000, to / 1_000]; } }, ...Object.fromEntries(settings.axes.map((axis) => [`y ${axis.id}`, scaleOf(axis)])) },
    axes: [timeAxis(settings.time, drawing, 0), ...(compared === undefined ? [] : [timeAxis(settings.earlier, drawing, compared)]), ...settings.axes.map((axis) => valueAxis(axis, drawing))],
    series: [{}, ...drawn.flatMap((one, n) => { const place = places[n]; return place === undefined ? [] : [seriesOptions(one, place, drawing)]; })],
    bands: [...stackedLines.map(([n, below]): uPlot.Band => ({ series: [n + 1, below + 1] })), ...edgeBands(drawn)],
    focus: { alpha: 0.3 },
    cursor: {
      sync: { key: drawing.syncKey, setSeries: false, scales: ["x", null], filters: { pub: (type) => type === "mousemove" || type === "mouseleave", sub: (type) => type === "mousemove" || type === "mouseleave" } },
      drag: { x: settings.zoom, y: false, setScale: false },
      points: { size: 7, fill: (_plot, n) => series[n - 1]?.color ?? theme.text, stroke: () => theme.ground },
      y: false,
    },
    hooks: {
      drawClear: [(plot) => drawGround(plot, drawing)],
      drawSeries: [(plot, n) => { const [one, place] = [drawn[n - 1], places[n - 1]]; if (one?.edge === undefined && one !== undefined && place !== undefined) { drawOver(plot, n, one, place, drawing); } }],
      draw: [(plot) => drawMarks(plot, moving.marks(), theme)],
      setSelect: [(plot) => {
        const { left, width: across } = plot.select;
        if (across >= 5) {
          drawing.zoomed(Math.round(plot.posToVal(left, "x") * 1_000), Math.round(plot.posToVal(left + across, "x") * 1_000));
        }
        plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
      }],
    },
  };
}
