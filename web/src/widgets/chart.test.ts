import { expect, test } from "vitest";
import { readDashboard, readSource } from "@/dashboard/model";
import { planOf } from "@/dashboard/plan";
import { readTimeWindow } from "@/dashboard/timeWindow";
import type { Alarm } from "@/alarms/alarm";
import { alarmsAsked, alarmsWithin } from "./timeChart/AlarmMarks";
import { alone, gapsOf } from "./timeChart/gaps";
import { barSpan } from "./timeChart/bars";
import { marksOf, rangeOf, timeTicks } from "./timeChart/scales";
import { figuresOf, heightOf, prolonged, seriesOf } from "./timeChart/series";
import { keyLook } from "./timeChart/keyLook";
import { chartSettings } from "./timeChart/settings";
import { nearestPoint, stacked, tableOf, thinned } from "./timeChart/table";
import { datePattern } from "./dates";

const widgetOf = (typeFullFqn: string, settings: object, key: object = {}) => {
  const widget = readDashboard({ widgets: { w: { typeFullFqn, config: { settings, datasources: [{ dataKeys: [{ name: "t", type: "timeseries", ...key }] }] } } } }).widgets.get("w");
  if (widget === undefined) {
    throw new Error("no widget");
  }
  return widget;
};

test("series are laid side by side, with gaps where one has no point", () => {
  expect(tableOf([{ times: [1_000, 2_000], values: [4, 5] }, { times: [3_000], values: [7] }])).toEqual([[1, 2, 3], [4, 5, null], [null, null, 7]]);
  expect(stacked([[1, 2], [1, 2], [3, null]], ["a", "a"])).toEqual([[1, 2], [1, 2], [4, null]]);
  expect(stacked([[1], [1], [3]], ["a", undefined])).toEqual([[1], [1], [3]]);
});

const MINUTE = 60_000;
const minutes = (...at: number[]): number[] => at.map((n) => n * MINUTE);
const everyMinute = Array.from({ length: 40 }, (_, n) => n);

test("lines are open only where their settings say so, and states never", () => {
  expect(chartSettings(widgetOf("system.time_series_chart", {})).gaps).toBeUndefined();
  expect(chartSettings(widgetOf("system.charts.basic_timeseries", { lineGaps: "usual" })).gaps).toBe("usual");
  expect(chartSettings(widgetOf("system.line_chart", { lineGaps: "after", lineGapSeconds: 90 })).gaps).toBe(90_000);
  expect(chartSettings(widgetOf("system.line_chart", { lineGaps: "after" })).gaps).toBeUndefined();
  expect(chartSettings(widgetOf("system.state_chart", { lineGaps: "usual" })).gaps).toBeUndefined();
  expect(gapsOf(minutes(0, 1, 500), undefined, MINUTE)).toEqual([]);
});

test("what is longer than usual is a gap", () => {
  const late = minutes(...everyMinute, 40.3, 41, 43, 44);
  expect(gapsOf(late, "usual", undefined)).toEqual([minutes(41, 43)]);
  // Groups with values are a minute long; one without a value is missing.
  expect(gapsOf(minutes(...everyMinute, 41, 42), "usual", MINUTE)).toEqual([minutes(39, 41)]);
  // Values that come less often than groups follow each other are as usual as those that come each minute.
  expect(gapsOf(minutes(0, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55), "usual", MINUTE)).toEqual([]);
  expect(gapsOf(minutes(0, 31, 59, 90, 120), "usual", "MONTH")).toEqual([]);
  const long = Array.from({ length: 50_000 }, (_, n) => (n + (n > 30_001 ? 5 : 0)) * MINUTE);
  expect(gapsOf(long, "usual", undefined)).toEqual([minutes(30_001, 30_007)]);
  expect([gapsOf([], "usual", undefined), gapsOf([1], "usual", undefined)]).toEqual([[], []]);
});

test("a time of one's own is a gap, but never less than a group", () => {
  expect(gapsOf(minutes(0, 1, 4, 9), 3 * MINUTE, undefined)).toEqual([minutes(4, 9)]);
  expect(gapsOf(minutes(0, 10, 20, 40), MINUTE, 10 * MINUTE)).toEqual([minutes(20, 40)]);
});

test("points between gaps stand alone", () => {
  const times = minutes(0, 10, 11, 20, 30, 31, 40);
  expect(alone(times, gapsOf(times, 5 * MINUTE, undefined)).sort((a, b) => a - b)).toEqual(minutes(0, 20, 40));
  expect(alone(times, [])).toEqual([]);
});

test("what can't be seen is thinned, and peaks stay", () => {
  const values = Array.from({ length: 10_000 }, (_, n) => (n === 7_777 ? 99 : n % 7));
  const kept = thinned({ times: values.map((_, n) => n), values }, 500);
  expect(kept.times.length).toBeLessThanOrEqual(1_000);
  expect(kept.values).toContain(99);
  expect([...kept.times].sort((a, b) => a - b)).toEqual(kept.times);
});

test("states hold from edge to edge, and words are states", () => {
  expect(prolonged([{ ts: 5, value: "a" }, { ts: 15, value: "b" }], 10, 30)).toEqual([{ ts: 10, value: "a" }, { ts: 15, value: "b" }, { ts: 30, value: "b" }]);
  const { states } = chartSettings(widgetOf("system.state_chart", { states: [{ label: "Off", value: 0, sourceType: "constant", sourceValue: "off" }, { label: "Hot", value: 2, sourceType: "range", sourceRangeFrom: 50 }] }));
  expect(["off", "60", "50", "20", ""].map((value) => heightOf(value, states))).toEqual([0, 2, 2, null, null]);
});

test("settings of several axes, thresholds and legends are read", () => {
  const settings = chartSettings(widgetOf("system.time_series_chart", { yAxes: { b: { order: 2, position: "right", min: { type: "latestKey", latestKey: "low", latestKeyType: "attribute" } }, a: { order: 1, max: 9 } }, thresholds: [{ type: "constant", value: 5, lineType: "dashed", lineColor: "rgba(0, 0, 0, 0.76)" }, { type: "x" }], legendConfig: { position: "right", showMax: true } }));
  expect(settings.axes.map(({ id, side }) => [id, side])).toEqual([["a", "left"], ["b", "right"]]);
  expect(settings.axes[1]?.min).toMatchObject({ type: "latestKey", key: "low" });
  expect(settings.thresholds).toHaveLength(1);
  expect(settings.thresholds[0]).toMatchObject({ dash: [4, 3], color: undefined, axis: "default" });
  expect(settings.legend).toMatchObject({ side: "right", columns: true, values: { max: true, avg: false } });
});

test("old charts are drawn as their settings said", () => {
  const widget = widgetOf("system.charts.basic_timeseries", { smoothLines: true, yaxis: { min: 1, tickDecimals: 2 }, stack: true }, { settings: { showSeparateAxis: true, axisPosition: "right", fillLines: true, thresholds: [{ thresholdValueSource: "predefinedValue", thresholdValue: 7, color: "#ff0000" }] } });
  const settings = chartSettings(widget);
  expect(settings.axes.map(({ side }) => side)).toEqual(["left", "right"]);
  expect(settings.thresholds[0]).toMatchObject({ color: "#ff0000", source: { value: 7 }, axis: settings.axes[1]?.id });
  expect(settings.stack).toBe(true);
  expect(chartSettings(widgetOf("system.charts.timeseries_bars_flot", {})).kind).toBe("bar");
});

test("bars share their interval, and have the width of settings without one", () => {
  const settings = { gap: 0, intervalGap: 0, group: true, relative: true, share: 0.1, absolute: 5 };
  expect(barSpan(15, 100, { index: 1, count: 2, group: () => [10, 20], below: undefined, settings })).toEqual([15, 20]);
  expect(barSpan(50, 100, { index: 0, count: 2, group: undefined, below: undefined, settings })).toEqual([45, 50]);
  expect(barSpan(50, 100, { index: 0, count: 1, group: undefined, below: undefined, settings: { ...settings, relative: false } })).toEqual([47.5, 52.5]);
});

test("axes have room for values and thresholds, and keep their limits", () => {
  const free = { min: undefined, max: undefined };
  expect(rangeOf(10, 20, free, [40], false)).toEqual([8.2, 41.8]);
  expect(rangeOf(10, 20, { min: 0, max: 15 }, [], false)).toEqual([0, 15]);
  expect(rangeOf(10, 20, free, [], true)[0]).toBe(0);
  expect(rangeOf(null, null, free, [], false)[0]).toBeLessThan(1);
  expect(rangeOf(5, 5, { min: 9, max: undefined }, [], false)).toEqual([9, 10]);
});

test("figures count the points within the window, and the nearest point is found over gaps", () => {
  expect(figuresOf({ times: [1, 2, 3, 4], values: [100, 1, null, 3], shift: undefined }, [2, 4])).toEqual({ min: 1, max: 3, avg: 2, total: 4, latest: 3 });
  expect(nearestPoint([1, null, null, 4], [0, 10, 20, 30], 1, 12)).toBe(0);
  expect(nearestPoint([null, null], [0, 10], 1, 9)).toBeNull();
});

test("dates have the patterns of settings, and ticks say when a day begins", () => {
  const ts = Date.UTC(2026, 10, 5, 14, 3, 9, 45);
  expect(datePattern(ts, "yyyy-MM-dd HH:mm:ss.SSS 'at' h a", "UTC")).toBe("2026-11-05 14:03:09.045 at 2 PM");
  expect(datePattern(ts, "d.M.yy", "Asia/Tokyo")).toBe("5.11.26");
  const day = Date.UTC(2026, 10, 5) / 1_000;
  expect(timeTicks([day, day + 3_600], 3_600, { day: "dd.MM." }, "UTC")).toEqual(["05.11.", "01:00"]);
});

test("range charts colour by band and fill by default", () => {
  const widget = widgetOf("system.humidity_range_chart", { rangeColors: [{ from: 10, color: "#111111" }, { to: 10, color: "#222222" }] });
  const settings = chartSettings(widget);
  expect(settings.bands?.map(({ color }) => color)).toEqual(["#222222", "#111111"]);
  expect(settings.thresholds.map(({ source }) => source.value)).toEqual([10]);
  const key = widget.datasources[0]?.dataKeys[0];
  expect(key === undefined ? undefined : keyLook(key, widget.settings, settings.kind).line.fill).toMatchObject({ type: "opacity", opacity: 0.7 });
});

test("series of one name and label are two, and the edges of a band go with their own", () => {
  const widget = widgetOf("system.time_series_chart", {});
  const source = readSource({ dataKeys: [{ name: "t", label: "T", type: "timeseries" }, { name: "t", label: "T", type: "timeseries" }] });
  const entity = { id: { entityType: "DEVICE", id: "7" }, name: "d", latest: new Map(), points: new Map([["t", [{ ts: 1, value: "5" }]]]) };
  const values = { source, entities: [entity], problem: undefined, total: 1 };
  const series = seriesOf([values, { ...values, role: "least" }, { ...values, role: "greatest" }], { settings: chartSettings(widget), widget, bounds: [0, 9], now: 9 });
  expect(new Set(series.map(({ id }) => id)).size).toBe(6);
  expect(series.map(({ edge }) => edge?.of)).toEqual([undefined, undefined, series[0]?.id, series[1]?.id, series[0]?.id, series[1]?.id]);
});

test("lines of the palette are lighter on a dark ground", () => {
  const widget = widgetOf("system.time_series_chart", {});
  const source = readSource({ dataKeys: [{ name: "t", label: "T", type: "timeseries", color: "#2196f3" }, { name: "u", label: "U", type: "timeseries", color: "#123456" }] });
  const entity = (id: string) => ({ id: { entityType: "DEVICE", id }, name: id, latest: new Map(), points: new Map() });
  const values = { source, entities: [entity("a"), entity("b")], problem: undefined, total: 2 };
  const colors = (scheme: "light" | "dark"): string[] => seriesOf([values], { settings: chartSettings(widget), widget, bounds: [0, 9], now: 9, scheme }).map(({ color }) => color);
  expect(colors("light")).toEqual(["#2196f3", "#123456", "#f44336", "#f44336"]);
  expect(colors("dark")).toEqual(["#64b5f6", "#123456", "#e57373", "#e57373"]);
});

test("a band asks for the least and the greatest values, of averages alone", () => {
  const stored = { entityAliases: { a: { id: "a", alias: "A", filter: { type: "singleEntity", singleEntity: { entityType: "DEVICE", id: "7" } } } }, widgets: { w: { typeFullFqn: "system.time_series_chart", config: { settings: { showBand: true }, datasources: [{ type: "entity", entityAliasId: "a", dataKeys: [{ name: "t", type: "timeseries" }] }] } } } };
  const dashboard = readDashboard(stored);
  const widget = dashboard.widgets.get("w");
  const asked = (aggregation: string): unknown[] => {
    const window = readTimeWindow({ realtime: { timewindowMs: 60_000, interval: 1_000 }, aggregation: { type: aggregation, limit: 100 } });
    return widget === undefined ? [] : planOf(widget, dashboard, {}, window, 0, { points: true, lines: true }, widget.datasources).map(({ role, request }) => [role, request?.window?.aggregation]);
  };
  expect(asked("AVG")).toEqual([["shown", "AVG"], ["least", "MIN"], ["greatest", "MAX"]]);
  expect(asked("SUM")).toEqual([["shown", "SUM"]]);
});

test("a threshold takes its value from the entity that it names", () => {
  const settings = chartSettings(widgetOf("system.time_series_chart", { thresholds: [{ type: "entity", entityAlias: "B", entityKey: "high", entityKeyType: "attribute" }] }));
  const of = (name: string, value: string) => {
    const source = readSource({ name, dataKeys: [{ name: "high", type: "attribute" }] });
    const entity = { id: { entityType: "DEVICE", id: name }, name, latest: new Map([["ATTRIBUTE/high", { ts: 1, value }]]), points: new Map() };
    return { source, entities: [entity], problem: undefined, total: 1, role: "beside" as const };
  };
  expect(marksOf(settings.thresholds, [of("A", "1"), of("B", "2")]).map(({ value }) => value)).toEqual([2]);
});

test("alarms over a chart are those that were active in its time", () => {
  const alarm = (startTs: number, clearTs: number): Alarm => ({ startTs, clearTs, cleared: clearTs > 0 }) as Alarm;
  expect(alarmsWithin([alarm(1, 5), alarm(1, 0), alarm(30, 0), alarm(12, 15)], [10, 20]).map(({ startTs }) => startTs)).toEqual([1, 12]);
  const asked = alarmsAsked([{ entityType: "DEVICE", id: "1" }, { entityType: "ASSET", id: "2" }, { entityType: "DEVICE", id: "3" }], 61_000);
  expect(asked.filters).toEqual([{ type: "entityList", entityType: "DEVICE", entityList: ["1", "3"] }, { type: "entityList", entityType: "ASSET", entityList: ["2"] }]);
  expect(asked.conditions).toEqual({ endTs: 120_000 });
  expect(alarmsAsked([], undefined).conditions).toEqual({});
});

test("letters of axes are as settings say, within bounds", () => {
  const { axes } = chartSettings(widgetOf("system.time_series_chart", { yAxes: { default: { labelFont: { size: 18, weight: "700", style: "italic" }, tickLabelFont: { size: 900, weight: "x;" } } } }));
  expect(axes[0]?.fonts).toEqual({ label: "italic 700 18px system-ui, sans-serif", tickLabel: "400 40px system-ui, sans-serif" });
});
