import { expect, test } from "vitest";
import { readTypeParameters, rulesOf } from "./typeRules";

const rules = (name: string, type: string) => rulesOf(`system.${name}`, type);

test("types permit as many sources and keys as they draw", () => {
  for (const name of ["time_series_chart", "line_chart", "bar_chart", "state_chart", "charts.basic_timeseries", "cards.timeseries_table"]) {
    expect(rules(name, "timeseries"), name).toMatchObject({ maxSources: Infinity, maxKeys: Infinity, latestKeys: true });
  }
  for (const name of ["cards.value_card", "temperature_card_with_background", "progress_bar", "digital_gauges.gauge_justgage", "vertical_cylinder_tank", "battery_level", "input_widgets.update_server_double_attribute"]) {
    expect(rules(name, "latest"), name).toMatchObject({ maxSources: 1, maxKeys: 1, singleEntity: true });
  }
  for (const name of ["pie", "doughnut", "radar", "cards.attributes_card", "maps_v2.openstreetmap", "input_widgets.update_multiple_attributes"]) {
    expect(rules(name, "latest"), name).toMatchObject({ maxSources: Infinity, maxKeys: Infinity });
  }
  expect(rules("cards.entities_table", "latest")).toMatchObject({ maxSources: 1, maxKeys: Infinity, kinds: ["entity", "device"] });
  expect(rules("range_chart", "timeseries")).toMatchObject({ maxSources: 1, maxKeys: 1, latestKeys: false });
  expect(rules("cards.aggregated_value_card", "timeseries")).toMatchObject({ maxSources: 1, maxKeys: 1, latestKeys: true });
  expect(rules("bar_chart_with_labels", "timeseries").latestKeys).toBe(false);
  expect(rules("wind_speed_and_direction", "latest").maxKeys).toBe(2);
  expect(rules("map", "latest").maxSources).toBe(0);
  expect(rules("single_switch", "rpc")).toMatchObject({ maxSources: 1, maxKeys: 0 });
  expect(rules("html_container", "static").maxSources).toBe(0);
});

test("counts count, and only latest values know of counts", () => {
  expect(rules("entity_count", "latest").kinds).toEqual(["entityCount"]);
  expect(rules("alarm_count", "latest").kinds).toEqual(["alarmCount"]);
  expect(rules("line_chart", "timeseries").kinds).toEqual(["entity", "device", "function"]);
  expect(rules("alarm_widgets.alarms_table", "alarm").kinds).toEqual(["entity", "device"]);
  expect(rules("cards.markdown_card", "static")).toMatchObject({ sourcesOptional: true, maxSources: Infinity });
});

test("a tenant's type says it of itself in its script", () => {
  const script = "self.onInit = function() {};\nself.typeParameters = function() {\n return { maxDatasources: 2, maxDataKeys: -1, singleEntity: true, hasAdditionalLatestDataKeys: true };\n};\nself.actionSources = function() { return { maxDatasources: 9 }; };";
  expect(readTypeParameters(script)).toEqual({ maxSources: 2, maxKeys: Infinity, singleEntity: true, latestKeys: true });
  expect(rulesOf("tenant.mine", "timeseries", script)).toMatchObject({ maxSources: 2, sourcesOptional: false, kinds: ["entity", "device", "function"] });
  expect(rulesOf("tenant.mine", "latest")).toMatchObject({ maxSources: Infinity, singleEntity: false });
});
