import { expect, test } from "vitest";
import { isKnown, rendererOf } from "./registry";

test("types and their presets find a renderer, and those that nobody draws are told apart", () => {
  for (const name of ["time_series_chart", "cards.value_card", "temperature_card_with_background", "cards.entities_table", "simple_humidity_chart_card", "cards.markdown_card", "temperature_progress_bar", "digital_gauges.simple_gauge_justgage", "charts.basic_timeseries", "cards.aggregated_value_card", "pie", "charts.radar_chart_js", "alarm_count", "entity_count", "battery_level", "vertical_cylinder_tank", "analogue_compass", "single_switch", "control_widgets.round_switch", "two_segment_button", "control_widgets.rpcbutton", "gpio_widgets.raspberry_pi_gpio_panel", "input_widgets.update_multiple_attributes", "input_widgets.update_shared_date_attribute", "input_widgets.update_json_attribute", "cards.qr_code", "map", "image_map", "trip_map", "maps_v2.openstreetmap", "maps_v2.test", "cards.label_widget", "scada_symbol", "input_widgets.markers_placement_google_maps", "navigation_widgets.navigation_card", "home_page_widgets.quick_links", "cards.dashboard_state_widget", "html_container"]) {
    expect(isKnown(`system.${name}`), name).toBe(true);
  }
  for (const fqn of ["system.gateway_widgets.config", ""]) {
    expect(isKnown(fqn), fqn).toBe(false);
  }
  expect(isKnown("tenant.value_card")).toBe(true);
  expect(rendererOf("tenant.value_card")).not.toBe(rendererOf("system.cards.value_card"));
  expect(rendererOf("system.simple_humidity_chart_card").points).toBe(true);
});
