import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { isKnown } from "./registry";
import { CARD_FORMS } from "./form/cards";
import { CHART_FORMS } from "./form/charts";
import { TABLE_FORMS } from "./form/tables";
import { formOf } from "./forms";
import type { FormField } from "@/ui/form/values";
import { keyLook } from "./timeChart/keyLook";
import { chartSettings } from "./timeChart/settings";
import { readDashboard } from "@/dashboard/model";
import { freeKey, fromRows, withValue, type FormValues } from "@/ui/form/values";

/** All code that draws or reads settings, without the forms themselves. */
const CODE = ["widgets", "dashboard"].flatMap((folder) => {
  const root = join(import.meta.dirname, "..", folder);
  const names = readdirSync(root, { recursive: true }).map(String);
  return names.filter((name) => /\.tsx?$/.test(name) && !/\.test\.|form\/|forms\.ts/.test(name)).map((name) => readFileSync(join(root, name), "utf8"));
}).join("\n");

const pathsOf = (fields: readonly FormField[]): string[] => fields.flatMap(({ name, fields: inner }) => [...(name === "" ? [] : [name]), ...pathsOf(inner ?? [])]);

test("each field that is declared is read by something that draws", () => {
  const forms = [...CARD_FORMS, ...CHART_FORMS, ...TABLE_FORMS];
  const names = new Set(forms.flatMap(({ settings, keys = [], latestKeys = [], config = [] }) => pathsOf([...settings, ...keys, ...latestKeys, ...config])).flatMap((path) => path.split(".")));
  const unread = [...names].filter((name) => name !== "default" && !new RegExp(`"${name}"|\\b${name}\\b[,:]`).test(CODE));
  expect(unread).toEqual([]);
});

test("the types that are added most have a form", () => {
  const types = ["time_series_chart", "line_chart", "bar_chart", "point_chart", "cards.value_card", "temperature_card_with_background", "cards.simple_card", "digital_gauges.gauge_justgage", "analogue_gauges.radial_gauge_canvas_gauges", "progress_bar", "cards.entities_table", "alarm_widgets.alarms_table", "cards.markdown_card", "cards.html_card", "alarm_count", "entity_count", "state_chart", "range_chart", "bar_chart_with_labels", "charts.basic_timeseries", "cards.timeseries_table", "cards.aggregated_value_card", "temperature_chart_card", "simple_temperature_chart_card"];
  expect(types.filter((type) => formOf(`system.${type}`) === undefined || !isKnown(`system.${type}`))).toEqual([]);
  expect(["cards.attributes_card", "cards.label_widget"].filter((type) => formOf(`system.${type}`) !== undefined)).toEqual([]);
});

test("what is set in the form of a chart changes how it is drawn", () => {
  const put = (values: FormValues, path: string, value: unknown): FormValues => {
    expect(pathsOf([...(formOf("system.time_series_chart")?.settings ?? []), ...(formOf("system.time_series_chart")?.keys ?? [])])).toContain(path);
    return withValue(values, path, value);
  };
  const own = put(put({}, "lineSettings.fillAreaSettings.type", "opacity"), "type", "bar");
  const axes = formOf("system.time_series_chart")?.settings.find(({ name }) => name === "yAxes");
  const [axis = {}] = axes?.begin ?? [];
  const rows = [put(put(axis, "max", 40), "position", "right"), { ...put({}, "max.type", "entity"), id: freeKey([axis], "id", axes?.keyPrefix ?? ""), order: 1 }];
  const settings = put(put({ yAxes: fromRows(rows, axes?.keyed, true) }, "stack", true), "legendConfig.showMax", true);
  const widget = readDashboard({ widgets: { w: { typeFullFqn: "system.time_series_chart", config: { settings, datasources: [{ dataKeys: [{ name: "t", type: "timeseries", settings: own }] }] } } } }).widgets.get("w");
  const key = widget?.datasources[0]?.dataKeys[0];
  if (widget === undefined || key === undefined) {
    throw new Error("no widget");
  }
  const read = chartSettings(widget);
  expect(read).toMatchObject({ stack: true, legend: { values: { max: true } } });
  expect(read.axes).toMatchObject([{ id: "default", side: "right", max: { value: 40 } }, { id: "axis1", max: { type: "entity" } }]);
  expect(settings["yAxes"]).toMatchObject({ default: { id: "default" }, axis1: { id: "axis1" } });
  expect(keyLook(key, settings, "line")).toMatchObject({ bars: true, line: { fill: { type: "opacity" } } });
});

test("presets of both cards with a course have the form of what draws them", () => {
  expect(formOf("system.simple_temperature_chart_card")?.latestKeys).toBeUndefined();
  expect(formOf("system.temperature_chart_card")?.latestKeys?.map(({ name }) => name)).toContain("position");
});
