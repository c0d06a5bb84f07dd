// What a widget asks for: its sources, those that it compares them with, and those that only its settings name.

import { aggregationIn, windowBefore } from "./aggregated";
import { list, object, text, type Json } from "./json";
import { readKey, readSource, type Dashboard, type Datasource, type Widget } from "./model";
import { keysOf, requestOf, type SourceRequest, type SourceValues } from "./source";
import { boundsOf, fixedWindow, type PointsWish, type TimeWindow } from "./timeWindow";

export interface Planned {
  source: Datasource;
  request: SourceRequest | undefined;
  role: NonNullable<SourceValues["role"]>;
  shift: number;
}

/** What a renderer needs besides latest values. */
export interface Needs {
  points: boolean;
  /** Whether it draws lines, which begin at the point before the window, and may compare it with an earlier one. */
  lines?: boolean;
  /** Whether it asks the server itself, page by page; what functions make up has no pages. */
  asksItself?: boolean;
}

const isStates = (fqn: string): boolean => /state_chart$/.test(fqn);

/** Returns how points are wanted: states as they changed, lines from before the window on. */
function wishOf(widget: Widget, needs: Needs, window: TimeWindow): PointsWish | undefined {
  if (needs.lines !== true) {
    return undefined;
  }
  return isStates(widget.fqn) ? { raw: true, previous: true } : window.aggregation === "NONE" && !/bar/.test(widget.fqn) ? { previous: true } : undefined;
}

/** Where settings name values: thresholds, and the limits of axes. */
function valueSources(settings: Json): Json[] {
  const limits = Object.values(object(settings["yAxes"])).flatMap((axis) => [object(object(axis)["min"]), object(object(axis)["max"])]);
  return [...list(settings["thresholds"]).map(object), ...limits, object(object(settings["yAxis"])["min"]), object(object(settings["yAxis"])["max"])];
}

/** Adds the latest values that settings name to the first source. */
function withLatest(source: Datasource, settings: Json): Datasource {
  const named = valueSources(settings).filter((one) => one["type"] === "latestKey" && text(one["latestKey"]) !== undefined);
  const missing = named.filter((one) => !source.latestKeys.some((key) => key.name === one["latestKey"]));
  return missing.length === 0 ? source : { ...source, latestKeys: [...source.latestKeys, ...missing.map((one) => readKey({ name: one["latestKey"], type: one["latestKeyType"] ?? "attribute", settings: { __hidden: true } }))] };
}

/**
 * Returns what asks for the least and the greatest value of each interval, where averages are to be shown with the band that they lie in. What
 * functions make up has no band: each run of them makes other values.
 */
function edgesOf(shown: readonly Planned[], widget: Widget, dashboard: Dashboard, params: Json, window: TimeWindow): Planned[] {
  if (widget.settings["showBand"] !== true || window.aggregation !== "AVG") {
    return [];
  }
  return ([["least", "MIN"], ["greatest", "MAX"]] as const).flatMap(([role, aggregation]) =>
    shown.filter(({ source }) => source.type !== "function").map(({ source }): Planned => {
      const own = { ...source, latestKeys: [] };
      return { source: own, request: requestOf(own, dashboard, params, { ...window, aggregation }), role, shift: 0 };
    }),
  );
}

/** Returns the sources of entities that settings name by their alias. */
function besides(settings: Json, dashboard: Dashboard): Datasource[] {
  return valueSources(settings).flatMap((one) => {
    const alias = one["type"] === "entity" ? [...dashboard.aliases.values()].find(({ alias: name }) => name === one["entityAlias"]) : undefined;
    return alias === undefined ? [] : [readSource({ type: "entity", name: alias.alias, entityAliasId: alias.id, dataKeys: [{ name: one["entityKey"], type: one["entityKeyType"] ?? "attribute" }] })];
  });
}

/** Live windows are compared with a stretch of the past that is longer by one of so many parts, so that it is not asked for each second. */
const PARTS = 4;
const LEAST_STEP_MS = 10_000;

/** Returns the window that points are compared with, and by how much they are moved. */
export function comparedWindow(window: TimeWindow, settings: Json, now: number): { window: TimeWindow; shift: number } | undefined {
  if (settings["comparisonEnabled"] !== true || window.all) {
    return undefined;
  }
  const [start] = boundsOf(window, now);
  const [from, to] = windowBefore(window, settings, now);
  const shift = start - from;
  if (!window.realtime || window.quick !== undefined) {
    return { window: { ...fixedWindow(window, from, to), interval: window.interval }, shift };
  }
  // It must have happened when it is asked for: no further ahead than the distance of the two.
  const step = Math.max(LEAST_STEP_MS, Math.min(Math.floor(window.length / PARTS), shift));
  const end = Math.ceil(to / step) * step;
  return { window: { ...fixedWindow(window, end - window.length - step, end), interval: window.interval }, shift };
}

/** Returns all that a widget asks for in a window that is seen from `now`. */
export function planOf(widget: Widget, dashboard: Dashboard, params: Json, window: TimeWindow, now: number, needs: Needs, sources: Datasource[]): Planned[] {
  const { settings } = widget;
  const began = window.quick === undefined ? {} : { began: boundsOf(window, now)[0] };
  const wish = wishOf(widget, needs, window);
  const shown = sources.map((stored, n): Planned => {
    const source = needs.lines === true && n === 0 ? withLatest(stored, settings) : stored;
    const asked = needs.asksItself === true && source.type === "function" ? undefined : requestOf(source, dashboard, params, needs.points ? window : undefined);
    const isAggregated = keysOf(source).some((key) => aggregationIn(key) !== undefined);
    const dated = needs.points || isAggregated ? began : {};
    const request = asked === undefined ? undefined : { ...asked, ...dated, ...(wish === undefined ? {} : { wish }), ...(isAggregated ? { aggregated: window } : {}) };
    return { source, request, role: "shown", shift: 0 };
  });
  if (needs.lines !== true) {
    return shown;
  }
  const compared = comparedWindow(window, settings, now);
  const earlier = shown.flatMap(({ source }): Planned[] => {
    const dataKeys = source.dataKeys.filter((key) => object(key.settings["comparisonSettings"])["showValuesForComparison"] === true);
    const past = { ...source, dataKeys, latestKeys: [] };
    return compared === undefined || dataKeys.length === 0 ? [] : [{ source: past, request: requestOf(past, dashboard, params, compared.window), role: "compared", shift: compared.shift }];
  });
  const others = besides(settings, dashboard).map((source): Planned => ({ source, request: requestOf(source, dashboard, params, undefined), role: "beside", shift: 0 }));
  return [...shown, ...earlier, ...edgesOf(shown, widget, dashboard, params, window), ...others];
}
