// Kinds that are drawn here and stand behind the frequent ones: they can be added by search although a server has no library of types.

import type { WidgetKind } from "./catalog";

/** A kind with what it is for. */
export interface DescribedKind extends WidgetKind {
  hint?: string;
}

const CHART = { sizeX: 12, sizeY: 7 };
const SHARES = { sizeX: 7, sizeY: 6 };
const DIAL = { sizeX: 6, sizeY: 5 };
const CARD = { sizeX: 5, sizeY: 3 };
const TABLE = { sizeX: 14, sizeY: 7 };
const COUNT = [{ name: "count", type: "count", label: "count", settings: {} }];
const RANGE = { minValue: 0, maxValue: 100 };

const CHARTS: readonly DescribedKind[] = [
  { fqn: "system.line_chart", title: "Line chart", type: "timeseries", size: CHART },
  { fqn: "system.point_chart", title: "Point chart", type: "timeseries", size: CHART },
  { fqn: "system.bar_chart_with_labels", title: "Bar chart with labels", type: "timeseries", size: CHART },
  { fqn: "system.state_chart", title: "State chart", type: "timeseries", size: CHART, hint: "States such as on and off over time, as steps" },
  { fqn: "system.range_chart", title: "Range chart", type: "timeseries", size: CHART, hint: "A course with colored ranges" },
  { fqn: "system.pie", title: "Pie", type: "latest", size: SHARES, hint: "Shares of several keys" },
  { fqn: "system.horizontal_doughnut", title: "Doughnut with its legend beside it", type: "latest", size: { sizeX: 8, sizeY: 4 }, hint: "Shares of several keys" },
  { fqn: "system.bars", title: "Bars of latest values", type: "latest", size: SHARES },
  { fqn: "system.polar_area", title: "Polar area", type: "latest", size: SHARES, hint: "Shares of several keys" },
  { fqn: "system.radar", title: "Radar", type: "latest", size: SHARES, hint: "Latest values of several keys as a net" },
];

const CARDS: readonly DescribedKind[] = [
  { fqn: "system.cards.horizontal_value_card", title: "Value beside its icon", type: "latest", size: CARD, settings: { layout: "horizontal" } },
  { fqn: "system.cards.simple_card", title: "Simple card", type: "latest", size: CARD, hint: "A value in large letters" },
  { fqn: "system.simple_value_and_chart_card", title: "Value with its course", type: "timeseries", size: { sizeX: 6, sizeY: 3 } },
  { fqn: "system.cards.aggregated_value_card", title: "Value compared with before", type: "timeseries", size: { sizeX: 6, sizeY: 4 } },
  { fqn: "system.cards.label_widget", title: "Labels on a picture", type: "latest", size: { sizeX: 10, sizeY: 7 }, hint: "Values where they are on a plan" },
  { fqn: "system.cards.html_card", title: "HTML card", type: "static", size: { sizeX: 8, sizeY: 4 }, settings: { cardHtml: "", cardCss: "" } },
  { fqn: "system.cards.html_value_card", title: "HTML with values", type: "latest", size: { sizeX: 8, sizeY: 4 }, settings: { cardHtml: "", cardCss: "" } },
  { fqn: "system.alarm_count", title: "Number of alarms", type: "latest", size: CARD, keyless: true, source: { type: "alarmCount", dataKeys: COUNT, alarmFilterConfig: { statusList: ["ACTIVE"] } } },
  { fqn: "system.entity_count", title: "Number of entities", type: "latest", size: CARD, keyless: true, source: { type: "entityCount", dataKeys: COUNT } },
];

const GAUGES: readonly DescribedKind[] = [
  { fqn: "system.digital_gauges.simple_gauge_justgage", title: "Simple gauge", type: "latest", size: DIAL, settings: RANGE },
  { fqn: "system.digital_gauges.horizontal_bar_justgage", title: "Horizontal bar", type: "latest", size: { sizeX: 7, sizeY: 3 }, settings: RANGE },
  { fqn: "system.digital_gauges.vertical_bar_justgage", title: "Vertical bar", type: "latest", size: { sizeX: 3, sizeY: 5 }, settings: RANGE },
  { fqn: "system.digital_gauges.digital_thermometer", title: "Digital thermometer", type: "latest", size: { sizeX: 3, sizeY: 5 }, settings: RANGE },
  { fqn: "system.digital_gauges.digital_speedometer", title: "Digital speedometer", type: "latest", size: DIAL, settings: RANGE },
  { fqn: "system.analogue_gauges.radial_gauge_canvas_gauges", title: "Radial gauge", type: "latest", size: DIAL, settings: RANGE, hint: "A dial with a needle" },
  { fqn: "system.analogue_gauges.temperature_gauge_canvas_gauges", title: "Thermometer scale", type: "latest", size: { sizeX: 3, sizeY: 6 }, settings: { minValue: -20, maxValue: 60 } },
  { fqn: "system.analogue_gauges.speed_gauge_canvas_gauges", title: "Speed gauge", type: "latest", size: DIAL, settings: { minValue: 0, maxValue: 180 } },
  { fqn: "system.analogue_compass", title: "Compass", type: "latest", size: DIAL, hint: "A direction in degrees" },
  { fqn: "system.wind_speed_and_direction", title: "Wind speed and direction", type: "latest", size: DIAL },
  { fqn: "system.signal_strength", title: "Signal strength", type: "latest", size: { sizeX: 4, sizeY: 4 } },
  { fqn: "system.status_widget", title: "Status", type: "latest", size: { sizeX: 4, sizeY: 4 }, settings: { padding: "8px" }, hint: "On or off, with an icon" },
  { fqn: "system.vertical_cylinder_tank", title: "Liquid level in a tank", type: "latest", size: { sizeX: 5, sizeY: 6 } },
];

const ATTRIBUTE: Record<string, unknown> = { retrieveValueMethod: "attribute", valueKey: "value" };

const CONTROLS: readonly DescribedKind[] = [
  { fqn: "system.two_segment_button", title: "Button of two halves", type: "latest", size: CARD, keyless: true, settings: { initialState: { action: "GET_DASHBOARD_STATE", dataToValue: { type: "NONE", compareToValue: "default" } } }, hint: "One half is chosen by a state" },
  { fqn: "system.control_widgets.led_indicator", title: "LED indicator", type: "rpc", size: { sizeX: 4, sizeY: 4 }, settings: { ledColor: "#4caf50", performCheckStatus: false, retrieveValueMethod: "attribute", valueAttribute: "value" }, hint: "A lamp that is lit while something is on" },
  { fqn: "system.control_widgets.knob_control", title: "Knob", type: "rpc", size: { sizeX: 5, sizeY: 5 }, settings: { minValue: 0, maxValue: 100, initialValue: 50, getValueMethod: "getValue", setValueMethod: "setValue", requestTimeout: 5_000 }, hint: "Turned to set a number" },
  { fqn: "system.control_widgets.round_switch", title: "Round switch", type: "rpc", size: { sizeX: 4, sizeY: 4 }, settings: { ...ATTRIBUTE, setValueMethod: "setValue", requestTimeout: 5_000 } },
  { fqn: "system.control_widgets.update_attributes", title: "Button that sets attributes", type: "rpc", size: CARD, settings: { entityAttributeType: "SERVER_SCOPE", entityParameters: "{}" } },
  { fqn: "system.control_widgets.rpc_remote_shell", title: "Remote shell", type: "rpc", size: { sizeX: 10, sizeY: 6 }, settings: { requestTimeout: 5_000 } },
  { fqn: "system.control_widgets.persistent_table", title: "Table of stored commands", type: "rpc", size: TABLE },
];

const FORMS: readonly DescribedKind[] = [
  { fqn: "system.input_widgets.update_json_attribute", title: "Form for an attribute with JSON", type: "latest", size: { sizeX: 8, sizeY: 5 } },
  { fqn: "system.input_widgets.update_shared_image_attribute", title: "Form for a picture", type: "latest", size: { sizeX: 7, sizeY: 5 }, hint: "Stored as a shared attribute" },
  { fqn: "system.input_widgets.web_camera_input", title: "Picture by camera", type: "latest", size: { sizeX: 8, sizeY: 6 } },
  { fqn: "system.input_widgets.device_claiming_widget", title: "Claiming of devices", type: "static", size: { sizeX: 7, sizeY: 4 }, settings: { deviceSecret: true } },
];

const HOME: readonly DescribedKind[] = [
  { fqn: "system.route_map", title: "Route on a map", type: "timeseries", size: { sizeX: 12, sizeY: 8 }, settings: { mapType: "geoMap" } },
  { fqn: "system.navigation_widgets.navigation_cards", title: "Links to all screens", type: "static", size: { sizeX: 12, sizeY: 7 } },
  { fqn: "system.home_page_widgets.quick_links", title: "Quick links", type: "static", size: { sizeX: 7, sizeY: 5 } },
  { fqn: "system.home_page_widgets.documentation_links", title: "Links to documentation", type: "static", size: { sizeX: 7, sizeY: 5 } },
  { fqn: "system.home_page_widgets.dashboards", title: "List of dashboards", type: "static", size: { sizeX: 7, sizeY: 6 } },
];

export const FURTHER_KINDS: readonly DescribedKind[] = [...CHARTS, ...CARDS, ...GAUGES, ...CONTROLS, ...FORMS, ...HOME];
