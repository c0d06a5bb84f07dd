import { expect, test } from "vitest";
import { aggregateCommand, aggregateName, readAggregates, shownAggregate, windowBefore, withValue } from "@/dashboard/aggregated";
import { readKey, readSource } from "@/dashboard/model";
import { comparedWindow, planOf } from "@/dashboard/plan";
import { readDashboard } from "@/dashboard/model";
import { fixedWindow, readTimeWindow } from "@/dashboard/timeWindow";
import { layoutOf } from "./card/ValueCard";
import { coursePath } from "./card/Course";
import { colorOf } from "./color";
import { fillPattern, shownValue } from "./text";
import { marksOf } from "./timeChart/scales";
import { chartSettings } from "./timeChart/settings";
import { converterOf, inSystem, systemOf } from "./units";
import { widgetInSystem } from "./unitSettings";

const DAY = 86_400_000;

test("values are shown in the units of their reader, and those without another unit stay", () => {
  expect(converterOf("°C", "°F")?.(100)).toBeCloseTo(212);
  expect(converterOf("km/h", "mph")?.(100)).toBeCloseTo(62.137, 2);
  expect(converterOf("°C", "m")).toBeUndefined();
  expect([systemOf("AUTO", "en-US"), systemOf("METRIC", "en-US"), systemOf(undefined, "de-DE")]).toEqual(["IMPERIAL", "METRIC", "METRIC"]);
  const source = readSource({ dataKeys: [{ name: "t", type: "timeseries", units: { from: "°C", METRIC: "°C", IMPERIAL: "°F" } }, { name: "u", type: "timeseries", units: "%" }] });
  const entity = { id: { entityType: "DEVICE", id: "7" }, name: "", latest: new Map([["TIME_SERIES/t", { ts: 1, value: "20" }], ["TIME_SERIES/u", { ts: 1, value: "20" }]]), points: new Map([["t", [{ ts: 1, value: "-40" }, { ts: 2, value: "cold" }]]]) };
  const values = [{ source, entities: [entity], problem: undefined, total: 1 }];
  const [shown] = inSystem(values, undefined, "IMPERIAL");
  expect(shown?.source.dataKeys.map(({ units }) => units)).toEqual(["°F", "%"]);
  expect(shown?.entities[0]?.latest.get("TIME_SERIES/t")?.value).toBe("68");
  expect(shown?.entities[0]?.latest.get("TIME_SERIES/u")?.value).toBe("20");
  expect(shown?.entities[0]?.points.get("t")?.map(({ value }) => value)).toEqual(["-40", "cold"]);
  expect(inSystem(values, undefined, "METRIC")).toBe(values);
});

test("what a window comes to is shown in the units of its reader, but counts and percents", () => {
  const of = (raw: Record<string, unknown>): string[] => {
    const source = readSource({ dataKeys: [{ name: "t", type: "timeseries", units: { from: "°C", METRIC: "°C", IMPERIAL: "°F" }, ...raw }] });
    const [key] = source.dataKeys;
    if (key === undefined) {
      throw new Error("no key");
    }
    const entity = { id: { entityType: "DEVICE", id: "7" }, name: "", latest: new Map([[aggregateName(key), { ts: 1, value: "20" }]]), points: new Map() };
    const [shown] = inSystem([{ source, entities: [entity], problem: undefined, total: 1 }], undefined, "IMPERIAL");
    return [shown?.entities[0]?.latest.get(aggregateName(key))?.value ?? "", shown?.source.dataKeys[0]?.units ?? ""];
  };
  expect(of({ aggregationType: "AVG" })).toEqual(["68", "°F"]);
  expect(of({ aggregationType: "AVG", comparisonEnabled: true, comparisonResultType: "DELTA_ABSOLUTE" })).toEqual(["36", "°F"]);
  expect(of({ aggregationType: "AVG", comparisonEnabled: true, comparisonResultType: "DELTA_PERCENT" })[0]).toBe("20");
  expect(of({ aggregationType: "COUNT" })[0]).toBe("20");
});

test("decimals without sense are read as the nearest that have some", () => {
  expect([shownValue("1.25", { decimals: 101, units: undefined }), shownValue("1.25", { decimals: -1, units: undefined })]).toEqual(["1.25", "1"]);
  expect(fillPattern("${t:200}", { id: { entityType: "DEVICE", id: "7" }, name: "", latest: new Map([["TIME_SERIES/t", { ts: 1, value: "1.5" }]]), points: new Map() }, [readKey({ name: "t", type: "timeseries" })])).toBe("1.5");
});

test("what a window comes to is asked for, kept up, and compared", () => {
  const key = readKey({ name: "t", type: "timeseries", aggregationType: "AVG", comparisonEnabled: true, timeForComparison: "days", comparisonResultType: "DELTA_PERCENT" });
  const window = readTimeWindow({ realtime: { realtimeType: 1, quickInterval: "CURRENT_DAY" }, timezone: "UTC" });
  const now = 10 * DAY + 5_000;
  const command = aggregateCommand([readKey({ name: "x", type: "timeseries" }), key], window, now)["aggTsCmd"];
  expect(command).toEqual({ startTs: 10 * DAY, timeWindow: DAY, keys: [{ id: 1, key: "t", agg: "AVG", previousStartTs: 9 * DAY, previousEndTs: 10 * DAY }, { id: 10_001, key: "t", agg: "COUNT" }] });
  expect(aggregateCommand([key], readTimeWindow({}), now)).toEqual({});
  const known = readAggregates({ 1: { current: { ts: 5, value: "30" }, previous: { ts: 1, value: "20" } }, 10_001: { current: { ts: 5, value: "2" } } }, undefined).get(1);
  if (known === undefined) {
    throw new Error("not read");
  }
  expect(shownAggregate(known, key)).toBe(50);
  expect(withValue(known, "AVG", 9, 60).current).toBe(40);
  expect(shownAggregate({ ...known, previous: 0 }, key)).toBe(100);
  expect(aggregateName(key)).not.toBe(aggregateName(readKey({ name: "t", type: "timeseries", aggregationType: "AVG" })));
  expect(windowBefore(fixedWindow(window, 31 * DAY, 32 * DAY), { timeForComparison: "months" }, now)).toEqual([0, DAY]);
  expect(windowBefore(fixedWindow(window, 31 * DAY, 32 * DAY), { timeForComparison: "customInterval", comparisonCustomIntervalValue: 7 }, now)[0]).toBe(31 * DAY - 7);
});

test("a chart asks for what it is compared with, and for the values that its settings name", () => {
  const dashboard = readDashboard({
    entityAliases: { a: { id: "a", alias: "Pump", filter: { type: "deviceType", deviceTypes: ["x"] } } },
    widgets: { w: { typeFullFqn: "system.time_series_chart", config: { settings: { comparisonEnabled: true, thresholds: [{ type: "entity", entityAlias: "Pump", entityKey: "max", entityKeyType: "attribute" }, { type: "latestKey", latestKey: "min", latestKeyType: "attribute" }] }, datasources: [{ entityAliasId: "a", dataKeys: [{ name: "t", type: "timeseries", settings: { comparisonSettings: { showValuesForComparison: true } } }, { name: "u", type: "timeseries" }] }] } } },
  });
  const widget = dashboard.widgets.get("w");
  if (widget === undefined) {
    throw new Error("no widget");
  }
  const window = fixedWindow(readTimeWindow({}), 10 * DAY, 11 * DAY);
  const plan = planOf(widget, dashboard, {}, window, 20 * DAY, { points: true, lines: true }, widget.datasources);
  expect(plan.map(({ role, shift, source }) => [role, shift, source.dataKeys.map(({ name }) => name)])).toEqual([["shown", 0, ["t", "u"]], ["compared", DAY, ["t"]], ["beside", 0, ["max"]]]);
  expect(plan[0]?.source.latestKeys.map(({ name }) => name)).toEqual(["min"]);
  expect(plan[1]?.request?.window).toMatchObject({ realtime: false, end: 10 * DAY, length: DAY });
  const live = comparedWindow(readTimeWindow({ realtime: { timewindowMs: DAY } }), { comparisonEnabled: true, timeForComparison: "customInterval", comparisonCustomIntervalValue: 60_000 }, 20 * DAY + 5_000);
  expect(live?.shift).toBe(60_000);
  // The same for a while, though time goes on, and never ahead of what has happened.
  expect(live?.window.end).toBe(20 * DAY);
});

test("cards lie as their settings say, colours run along gradients, lines end where their values do", () => {
  expect([layoutOf("system.cards.value_card", {}), layoutOf("system.cards.horizontal_value_card", {}), layoutOf("system.cards.value_card", { layout: "simplified" })]).toEqual(["square", "horizontal", "simplified"]);
  expect(colorOf({ type: "gradient", gradient: { gradient: ["#000000", "#ffffff"], minValue: 0, maxValue: 10 } }, 2, "red")).toBe("color-mix(in srgb, #ffffff 20%, #000000)");
  expect(colorOf({ type: "range", color: "#111", rangeList: { advancedMode: true, rangeAdvanced: [{ from: { type: "constant", value: 5 }, color: "#222" }] } }, 7, "red")).toBe("#222");
  expect(coursePath([{ ts: 5, value: "1" }, { ts: 7, value: "x" }, { ts: 10, value: "2" }], [0, 10])).toBe("M50.00 28.00L100.00 2.00");
});

test("what settings measure goes with the unit of the values: colors, scales, thresholds, axes", () => {
  const units = { from: "°C", METRIC: "°C", IMPERIAL: "°F" };
  const widgetOf = (fqn: string, config: object): NonNullable<ReturnType<ReturnType<typeof readDashboard>["widgets"]["get"]>> => {
    const widget = readDashboard({ widgets: { w: { typeFullFqn: fqn, config } } }).widgets.get("w");
    if (widget === undefined) {
      throw new Error("no widget");
    }
    return widget;
  };
  const card = widgetOf("system.cards.value_card", { units, settings: { minValue: 0, barColor: { type: "range", rangeList: [{ from: 10, to: 20, color: "#fff" }] }, position: { from: 10 } } });
  expect(widgetInSystem(card, "IMPERIAL").settings).toEqual({ minValue: 32, barColor: { type: "range", rangeList: [{ from: 50, to: 68, color: "#fff" }] }, position: { from: 10 } });
  expect(widgetInSystem(card, "METRIC")).toBe(card);
  const advanced = widgetOf("system.cards.value_card", { units, settings: { c: { rangeAdvanced: [{ from: { type: "constant", value: 10 }, to: { type: "entity", value: 10 }, color: "#fff" }], gradientAdvanced: [{ source: { type: "constant", value: 0 }, color: "#000" }] } } });
  expect(widgetInSystem(advanced, "IMPERIAL").settings["c"]).toEqual({ rangeAdvanced: [{ from: { type: "constant", value: 50 }, to: { type: "entity", value: 10 }, color: "#fff" }], gradientAdvanced: [{ source: { type: "constant", value: 32 }, color: "#000" }] });
  const thresholds = [{ type: "constant", value: 100, units }, { type: "latestKey", latestKey: "high", units }, { type: "constant", value: 7, units: "%" }];
  const chart = widgetInSystem(widgetOf("system.time_series_chart", { settings: { thresholds, yAxes: { default: { units, min: -40, max: { type: "constant", value: 100 } } } } }), "IMPERIAL");
  const read = chartSettings(chart);
  expect(read.axes[0]).toMatchObject({ units: "°F", min: { value: -40 }, max: { value: 212 } });
  const source = readSource({ dataKeys: [{ name: "high", type: "attribute" }] });
  const entity = { id: { entityType: "DEVICE", id: "7" }, name: "", latest: new Map([["ATTRIBUTE/high", { ts: 1, value: "0" }]]), points: new Map() };
  expect(marksOf(read.thresholds, [{ source, entities: [entity], problem: undefined, total: 1 }]).map(({ text }) => text)).toEqual(["212 °F", "32 °F", "7 %"]);
});
