import { expect, test } from "vitest";
import { isKnown, rendererOf } from "./registry";

test("types and their presets find a renderer, and those that nobody draws are told apart", () => {
  for (const name of ["time_series_chart", "cards.value_card", "temperature_card_with_background", "cards.entities_table", "simple_humidity_chart_card", "cards.markdown_card", "temperature_progress_bar", "digital_gauges.simple_gauge_justgage", "charts.basic_timeseries", "cards.aggregated_value_card", "pie", "charts.radar_chart_js", "alarm_count", "entity_count", "battery_level", "vertical_cylinder_tank", "analogue_compass"]) {
    expect(isKnown(`system.${name}`), name).toBe(true);
  }
  for (const fqn of ["system.gateway_widgets.config", "system.navigation_card", "system.map", "system.single_switch", ""]) {
    expect(isKnown(fqn), fqn).toBe(false);
  }
  expect(isKnown("tenant.value_card")).toBe(true);
  expect(rendererOf("tenant.value_card")).not.toBe(rendererOf("system.cards.value_card"));
  expect(rendererOf("system.simple_humidity_chart_card").points).toBe(true);
});
