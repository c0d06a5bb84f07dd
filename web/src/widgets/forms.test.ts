import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { WIDGET_KINDS } from "./catalog";
import { FURTHER_KINDS } from "./furtherKinds";
import german from "@/i18n/de.json";
import { isKnown, RENDERERS, rendererOf } from "./registry";
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

/** Types whose settings have no declared form, each with the reason. */
const WITHOUT: Readonly<Record<string, string>> = {
  "cards.attributes_card": "has no settings",
  "gateway_widgets.attributes_card": "shows the values of its keys, whatever its settings say of events",
  "home_page_widgets.dashboards": "has no settings",
  "home_page_widgets.getting_started": "has no settings",
  "home_page_widgets.usage_info": "has no settings",
  "home_page_widgets.iot_hub": "says that it isn't here",
  "edge_widgets.edges_overview": "says that it isn't here",
  mobile_app_qr_code: "says that it isn't here",
  unread_notifications: "says that it isn't here",
  map: "has the form of maps, by their kind",
  image_map: "has the form of maps, by their kind",
  trip_map: "has the form of maps, by their kind",
  route_map: "has the form of maps, by their kind",
  scada_symbol: "has the form that its symbol declares",
};

/** Types that every installation of ThingsBoard has, with one preset of each family. */
const TYPES = [
  ...["time_series_chart", "line_chart", "bar_chart", "point_chart", "state_chart", "range_chart", "temperature_range_chart_with_background", "bar_chart_with_labels", "charts.basic_timeseries", "charts.timeseries_bars_flot", "charts.state_chart"],
  ...["pie", "doughnut", "horizontal_doughnut", "bars", "polar_area", "radar", "charts.pie", "charts.bars", "charts.pie_chart_js", "charts.doughnut_chart_js", "charts.polar_area_chart_js", "charts.radar_chart_js"],
  ...["cards.value_card", "cards.horizontal_value_card", "temperature_card_with_background", "indoor_horizontal_co2_card", "cards.simple_card", "cards.aggregated_value_card", "simple_value_and_chart_card", "temperature_chart_card", "simple_temperature_chart_card", "label_card", "label_value_card", "progress_bar", "humidity_progress_bar_with_background", "alarm_count", "entity_count"],
  ...["cards.markdown_card", "cards.html_card", "cards.html_value_card", "cards.label_widget", "cards.attributes_card", "cards.qr_code", "cards.dashboard_state_widget", "html_container"],
  ...["cards.entities_table", "cards.timeseries_table", "alarm_widgets.alarms_table", "cards.entities_hierarchy", "entity_admin_widgets.device_admin_table", "entity_admin_widgets.asset_admin_table"],
  ...["digital_gauges.gauge_justgage", "digital_gauges.digital_thermometer", "digital_gauges.lcd_bar_gauge", "analogue_gauges.radial_gauge_canvas_gauges", "analogue_gauges.temperature_gauge_canvas_gauges", "analogue_gauges.speed_gauge_canvas_gauges", "analogue_gauges.analogue_compass", "temperature_gauge", "flow_rate_gauge"],
  ...["battery_level", "signal_strength", "status_widget", "wind_speed_and_direction", "wind_speed_and_direction_with_background", "vertical_cylinder_tank", "horizontal_2_1_elliptical_tank", "rectangle_tank"],
  ...["single_switch", "toggle_button", "two_segment_button", "power_button", "command_button", "action_button", "value_stepper", "slider"],
  ...["knob_control", "led_indicator", "round_switch", "slide_toggle_control", "switch_control", "rpcbutton", "update_attributes", "persistent_table", "rpc_debug_terminal", "rpc_remote_shell"].map((name) => `control_widgets.${name}`),
  ...["basic_gpio_control", "raspberry_pi_gpio_control", "gpio_panel", "raspberry_pi_gpio_panel"].map((name) => `gpio_widgets.${name}`),
  ...["update_multiple_attributes", "update_json_attribute", "web_camera_input", "device_claiming_widget", "markers_placement_openstreetmap", "markers_placement_google_maps", "markers_placement_image_map"].map((name) => `input_widgets.${name}`),
  ...["string", "integer", "double", "boolean", "location"].flatMap((kind) => [`update_server_${kind}_attribute`, `update_shared_${kind}_attribute`, `update_${kind}_timeseries`]).map((name) => `input_widgets.${name}`),
  ...["date", "image"].flatMap((kind) => [`update_server_${kind}_attribute`, `update_shared_${kind}_attribute`]).map((name) => `input_widgets.${name}`),
  ...["map", "image_map", "trip_map", "route_map", "scada_symbol", "maps_v2.openstreetmap", "maps_v2.google_maps", "maps_v2.image_map", "maps_v2.route_map", "maps_v2.test"],
  ...["dashboards", "documentation_links", "getting_started", "iot_hub", "quick_links", "usage_info"].map((name) => `home_page_widgets.${name}`),
  ...["navigation_widgets.navigation_card", "navigation_widgets.navigation_cards", "api_usage", "date.date_range_navigator", "edge_widgets.edges_overview", "mobile_app_qr_code", "unread_notifications"],
  ...["attributes_card", "gateway_status", "markdown_card", "service_rpc"].map((name) => `gateway_widgets.${name}`),
];

test("every type that is drawn here and has settings has a form", () => {
  const own = [...WIDGET_KINDS, ...FURTHER_KINDS].map(({ fqn }) => fqn.replace("system.", ""));
  const types = [...new Set([...TYPES, ...own])];
  expect(types.filter((type) => !isKnown(`system.${type}`))).toEqual([]);
  const without = types.filter((type) => (formOf(`system.${type}`)?.settings.length ?? 0) === 0);
  expect(without.sort()).toEqual(Object.keys(WITHOUT).sort());
  // None of the ways to draw is left out of the list.
  expect(RENDERERS.filter((renderer) => !types.some((type) => rendererOf(`system.${type}`) === renderer)).map(({ names }) => names.source)).toEqual([]);
});

/** All texts of fields that people read. */
const textsOf = (fields: readonly FormField[]): string[] =>
  fields.flatMap(({ label, help, options = [], fields: inner = [] }) => [label, ...(help === undefined ? [] : [help]), ...options.flatMap((option) => (typeof option === "string" || option.label === option.value ? [] : [option.label])), ...textsOf(inner)]);

test("every text of the forms has its German", () => {
  const forms = TYPES.flatMap((type) => formOf(`system.${type}`) ?? []);
  const texts = new Set(forms.flatMap(({ settings, config = [], keys = [], latestKeys = [] }) => textsOf([...settings, ...config, ...keys, ...latestKeys])));
  expect([...texts].filter((text) => /[a-z]/.test(text) && !(text in german) && !text.startsWith("function ("))).toEqual([]);
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
