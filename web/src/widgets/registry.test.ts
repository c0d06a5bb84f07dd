import { expect, test } from "vitest";
import { isKnown, rendererOf } from "./registry";

test("types and their presets find a renderer, and custom types none", () => {
  for (const name of ["time_series_chart", "cards.value_card", "temperature_card_with_background", "cards.entities_table", "simple_humidity_chart_card", "cards.markdown_card", "temperature_progress_bar", "digital_gauges.simple_gauge_justgage", "charts.basic_timeseries", "cards.aggregated_value_card"]) {
    expect(isKnown(`system.${name}`), name).toBe(true);
  }
  for (const fqn of ["tenant.value_card", "system.gateway_widgets.config", "system.navigation_card", ""]) {
    expect(isKnown(fqn), fqn).toBe(false);
  }
  expect(rendererOf("system.simple_humidity_chart_card").points).toBe(true);
});
