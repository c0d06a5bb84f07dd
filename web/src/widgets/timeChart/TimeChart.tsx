// Lines, bars, points and states over time. Drawn on a canvas; a change of the data changes the chart, it is not made anew.

import { useContext, useEffect, useMemo, useRef, useState, type ReactElement } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { SourceValues } from "@/dashboard/source";
import { serverNow } from "@/dashboard/time/clock";
import { TimeContext } from "@/dashboard/time/control";
import { groupAt } from "@/dashboard/time/grouping";
import { groupingIn } from "@/dashboard/timeWindow";
import { t } from "@/i18n";
import { EmptyState } from "@/ui/feedback";
import { loadable } from "@/ui/loadable";
import { useRootScale } from "@/ui/rootScale";
import { formattedDate } from "../dates";
import type { WidgetProps } from "../registry";
import { shownValue } from "../text";
import { usePageLook, useScheme } from "../useScheme";
import { SandboxedTexts } from "./functions";
import { alone, gapsOf } from "./gaps";
import { watchGestures } from "./gestures";
import { Legend } from "./Legend";
import type { Mark, Theme } from "./marks";
import { optionsOf, type Moving } from "./options";
import { limitsOf, marksOf, type Limits } from "./scales";
import { latestBeside, seriesOf, stateOf, type Series } from "./series";
import { chartSettings, type ChartSettings } from "./settings";
import { stacked, tableOf, thinned, type Table } from "./table";
import { rowsAt, Tooltip, type TooltipRow, type TooltipTexts } from "./tooltip";
import classes from "./timeChart.module.css";

const AlarmMarks = loadable(() => import("./AlarmMarks"));

/** One cursor goes over all charts of the page. */
const SYNC = "dashboard";

/** What the drawing looks at; it changes while the chart stays. */
interface Held {
  bounds: [number, number];
  view: [number, number] | undefined;
  marks: readonly Mark[];
  limits: ReadonlyMap<string, Limits>;
  open: readonly ReturnType<Moving["open"]>[];
  series: readonly Series[];
  sources: readonly SourceValues[];
  raw: Table;
  texts: TooltipTexts;
  zoom: (from: number, to: number) => void;
}

const CLOSED: ReturnType<Moving["open"]> = { gaps: [], alone: [] };

function themeOf(element: HTMLElement): Theme {
  const style = getComputedStyle(element);
  const read = (name: string, otherwise: string): string => style.getPropertyValue(name).trim() || otherwise;
  return { text: style.color, soft: read("--mantine-color-dimmed", style.color), line: read("--mantine-color-default-border", "#8888"), ground: read("--mantine-color-body", "#fff") };
}

/** Returns the columns that are drawn, and those that are shown beside the cursor. */
function tablesOf(series: readonly Series[], settings: ChartSettings, hidden: ReadonlySet<string>, width: number): { raw: Table; drawn: Table } {
  const raw = tableOf(series.map((one) => thinned(one, Math.max(400, width) * (one.look.line.smooth || one.look.line.step !== undefined || one.look.line.points ? 2 : 8))));
  if (!settings.stack) {
    return { raw, drawn: raw };
  }
  const groups = series.map((one) => (one.look.stacks && one.edge === undefined && !hidden.has(one.id) ? `${one.look.axis} ${one.look.bars} ${one.shift ?? ""}` : undefined));
  return { raw, drawn: stacked(raw, groups) };
}

function useHidden(series: readonly Series[]): [ReadonlySet<string>, (id: string) => void] {
  const [changed, setChanged] = useState<ReadonlyMap<string, boolean>>(new Map());
  // The edges of a band go with what it is of.
  const hidden = useMemo(() => new Set(series.filter((one) => changed.get(one.edge?.of ?? one.id) ?? one.look.hidden).map(({ id }) => id)), [series, changed]);
  const toggle = (id: string): void => setChanged(new Map(changed).set(id, !hidden.has(id)));
  return [hidden, toggle];
}

function makeTexts(settings: ChartSettings, zone: string | undefined, group: ((ts: number) => [number, number]) | undefined, texts: SandboxedTexts, sources: () => readonly SourceValues[]): TooltipTexts {
  const date = (ts: number): string => formattedDate(ts, settings.tooltip.format, zone);
  const own = (row: TooltipRow): string | undefined => {
    const { look, entity, key } = row.series;
    if (look.tooltip === undefined) {
      return undefined;
    }
    const latest = sources().find((one) => one.entities.includes(entity))?.source.latestKeys ?? [];
    return texts.text(look.tooltip, ["value", "latestData"], [row.value, latestBeside(entity, [key, ...latest])]);
  };
  return {
    title: (ts) => {
      const span = group === undefined || !settings.tooltip.interval ? undefined : group(ts);
      return !settings.tooltip.date ? "" : span === undefined ? date(ts) : `${date(span[0])} – ${date(span[1])}`;
    },
    label: ({ series: { label, shift }, ts }) => (shift === undefined ? label : `${label} (${date(ts - shift)})`),
    value: (row) => settings.states.find(({ value }) => value === row.value)?.label ?? own(row) ?? shownValue(String(row.value), { units: row.series.key.units, decimals: row.series.key.decimals ?? 2 }),
    total: settings.tooltip.total && settings.stack ? (rows) => t("Total {value}", { value: shownValue(String(rows.reduce((sum, { value }) => sum + value, 0)), { units: rows[0]?.series.key.units, decimals: rows[0]?.series.key.decimals ?? 2 }) }) : undefined,
    hideZeros: settings.tooltip.hideZeros,
    byPoint: settings.tooltip.byPoint,
  };
}

/** Lets the cursor of a chart show what it stands over, as long as it is the pointer's own and not that of another chart. */
function watchCursor(plot: uPlot, settings: ChartSettings, held: () => Held): () => void {
  const tooltip = new Tooltip(plot);
  let inside = false;
  const update = (): void => {
    const { left = -1, top = -1 } = plot.cursor;
    const { series, raw, texts } = held();
    if (!inside || left < 0 || !settings.tooltip.show) {
      tooltip.hide();
      return;
    }
    tooltip.show(rowsAt(plot, series.filter((one) => one.edge === undefined), raw.slice(1) as (number | null)[][], left, top, texts.byPoint), texts, left, top);
  };
  const controller = new AbortController();
  const { signal } = controller;
  const on = (name: string, now: boolean): void => plot.over.addEventListener(name, () => { inside = now; update(); }, { signal, passive: true });
  on("mouseenter", true);
  on("mouseleave", false);
  on("touchstart", true);
  (plot.hooks.setCursor ??= []).push(update);
  (plot.hooks.setData ??= []).push(update);
  return () => controller.abort();
}

export default function TimeChart({ widget, sources, bounds }: WidgetProps): ReactElement {
  const pane = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot>(undefined);
  const held = useRef<Held>(undefined);
  const time = useContext(TimeContext);
  // The colours are drawn, so that a change of them by the system, too, must draw anew.
  const page = usePageLook();
  const scheme = useScheme(widget);
  // Sizes of letters and of axes grow with the letters of the page.
  const scale = useRootScale();
  const settings = useMemo(() => chartSettings(widget), [widget, scale]);
  const [width, setWidth] = useState(0);
  const [plotted, setPlotted] = useState<uPlot>();
  const base = useRef(bounds[0]).current;
  const [, setTold] = useState(0);
  const texts = useMemo(() => new SandboxedTexts(() => { setTold((n) => n + 1); chart.current?.redraw(false, true); }), []);

  const window = time?.window;
  const zone = window?.zone;
  const grouping = window === undefined || settings.kind === "state" ? undefined : groupingIn(window, bounds[0], bounds[1]);
  const group = useMemo(() => (grouping === undefined ? undefined : (ts: number): [number, number] => groupAt(grouping, ts, zone)), [grouping, zone]);
  // Only states are held up to the present, so that only they change with it.
  const edges = settings.kind === "state" ? bounds : undefined;
  const series = useMemo(() => seriesOf(sources, { settings, widget, bounds: edges ?? [0, 0], now: serverNow(), scheme }), [sources, settings, widget, edges, scheme]);
  const open = useMemo(() => series.map(({ times, look }) => { if (look.bars) { return CLOSED; } const gaps = gapsOf(times, settings.gaps, grouping); return { gaps, alone: alone(times, gaps) }; }), [series, settings, grouping]);
  const [hidden, toggle] = useHidden(series);
  const tables = useMemo(() => tablesOf(series, settings, hidden, width), [series, settings, hidden, width]);
  const marks = useMemo(() => marksOf(settings.thresholds, sources), [settings, sources]);
  const limits = useMemo(() => new Map(settings.axes.map((axis) => [axis.id, limitsOf(axis, sources)])), [settings, sources]);
  const tooltipTexts = useMemo(() => makeTexts(settings, zone, group, texts, () => held.current?.sources ?? []), [settings, zone, group, texts]);
  const all = window?.all === true ? ([Math.min(bounds[1] - 1, ...series.map((one) => one.times[0] ?? Infinity)), bounds[1]] as [number, number]) : bounds;

  held.current = { bounds: all, view: held.current?.view, marks, limits, open, series, sources, raw: tables.raw, texts: tooltipTexts, zoom: (from, to) => time?.zoom(from, to) };
  const shape = JSON.stringify([settings, scale, zone ?? "", grouping ?? "", page, series.map(({ id, label, color, look, shift }) => [id, label, color, look, shift])]);
  const drawn = useRef(tables.drawn);
  drawn.current = tables.drawn;
  const isEmpty = width === 0;

  useEffect(() => {
    const frame = pane.current;
    if (frame === null || isEmpty) {
      return undefined;
    }
    const now = (): Held => held.current as Held;
    const range = (): [number, number] => now().view ?? now().bounds;
    const theme = themeOf(frame);
    const drawing = { settings, series: now().series, theme, zone, texts, syncKey: SYNC, moving: { range, marks: () => now().marks, limits: () => now().limits, open: (n) => now().open[n] ?? CLOSED, group } satisfies Moving, zoomed: (from: number, to: number) => now().zoom(from, to) };
    const plot = new uPlot(optionsOf(drawing, frame.clientWidth, Math.max(40, frame.clientHeight)), drawn.current as uPlot.AlignedData, frame);
    chart.current = plot;
    setPlotted(plot);
    const place = (): void => {
      const { min, max } = plot.scales["x"] ?? {};
      plot.over.style.setProperty("--low", String((min ?? 0) - base / 1_000));
      plot.over.style.setProperty("--span", String((max ?? 1) - (min ?? 0)));
    };
    place();
    (plot.hooks.setScale ??= []).push(place);
    const endCursor = watchCursor(plot, settings, now);
    const show = (next: [number, number] | undefined): void => {
      now().view = next;
      const [from, to] = range();
      plot.setScale("x", { min: from / 1_000, max: to / 1_000 });
    };
    const endGestures = settings.zoom
      ? watchGestures(plot, { range, preview: show, settle: ([from, to]) => now().zoom(from, to) })
      : () => undefined;
    return () => {
      endCursor();
      endGestures();
      setPlotted(undefined);
      plot.destroy();
      chart.current = undefined;
    };
    // Everything that the chart is made of is in its shape.
  }, [shape, isEmpty]);

  useEffect(() => {
    const place = pane.current;
    if (place === null) {
      return undefined;
    }
    const size = new ResizeObserver(() => {
      setWidth(Math.round(place.clientWidth / 100) * 100);
      chart.current?.setSize({ width: place.clientWidth, height: Math.max(40, place.clientHeight) });
    });
    size.observe(place);
    return () => size.disconnect();
  }, []);

  const [from, to] = all;
  const named = series.filter((one) => one.edge === undefined);
  const originators = useMemo(() => [...new Map(named.map(({ entity }) => [entity.id.id, entity.id])).values()], [series]);
  useEffect(() => {
    if (held.current !== undefined) {
      held.current.view = undefined;
    }
  }, [window]);
  useEffect(() => chart.current?.setData(tables.drawn as uPlot.AlignedData), [tables, shape, marks, limits]);
  useEffect(() => {
    const [low, high] = held.current?.view ?? [from, to];
    chart.current?.setScale("x", { min: low / 1_000, max: high / 1_000 });
  }, [from, to, tables, window]);
  useEffect(() => {
    series.forEach((one, n) => {
      const show = !hidden.has(one.id);
      if (chart.current?.series[n + 1]?.show !== show) {
        chart.current?.setSeries(n + 1, { show });
      }
    });
  }, [hidden, series, shape, isEmpty]);

  const focus = (id: string | undefined): void => {
    const at = id === undefined ? -1 : series.findIndex((one) => one.id === id);
    chart.current?.setSeries(at < 0 ? null : at + 1, { focus: true }, false);
  };
  const points = tables.raw[0].length;
  const words = t("{title}: {n} moments of {series}", { title: widget.title, n: points, series: named.map((one) => one.label).join(", ") });
  return (
    <div className={classes["chart"]} data-side={settings.legend.side} data-from={Math.round(from)} data-to={Math.round(to)} data-marks={marks.map(({ value }) => value).join(" ")}>
      {settings.legend.show && <Legend settings={settings} series={named} hidden={hidden} bounds={all} onToggle={toggle} onPoint={focus} />}
      <div className={classes["pane"]} ref={pane} dir="ltr" role={settings.alarms ? "group" : "img"} aria-label={words} data-points={points} data-gaps={open.reduce((sum, { gaps }, n) => (series[n]?.edge === undefined ? sum + gaps.length : sum), 0)} data-states={settings.kind === "state" ? statesIn(series, settings) : undefined}>
        {points === 0 && (
          <div className={classes["empty"]}>
            <EmptyState>{t("No values in this time.")}</EmptyState>
          </div>
        )}
      </div>
      {settings.alarms && plotted !== undefined && <AlarmMarks plot={plotted} entities={originators} bounds={all} base={base} live={window?.realtime === true} />}
    </div>
  );
}

/** Names the states that are shown, in their order. */
function statesIn(series: readonly Series[], settings: ChartSettings): string {
  const values = series.flatMap((one) => one.values).filter((value, n, all) => value !== null && value !== all[n - 1]);
  return values.map((value) => stateOf(settings.states.map((state) => ({ ...state, exactly: String(state.value), from: undefined, to: undefined })), String(value))?.label ?? "").join(" ");
}
