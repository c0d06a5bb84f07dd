// Kinds of widgets that can be added, with what a new one begins with.

import type { Json } from "@/dashboard/model";

export interface WidgetKind {
  fqn: string;
  title: string;
  /** What its data is, as ThingsBoard names it. */
  type: "latest" | "timeseries" | "alarm" | "static" | "rpc";
  size: { sizeX: number; sizeY: number };
  settings?: Json;
  /** Whether it shows no values of keys. */
  keyless?: boolean;
  /** What its source has, where that isn't the values of an entity. */
  source?: Json;
}

const shared = (key: string): Json => ({ action: "SET_ATTRIBUTE", setAttribute: { key, scope: "SHARED_SCOPE" }, valueToData: { type: "VALUE" } });
const known = (key: string): Json => ({ action: "GET_ATTRIBUTE", getAttribute: { key, scope: "SHARED_SCOPE" }, dataToValue: { type: "NONE", compareToValue: true } });
const USABLE: Json = { action: "DO_NOTHING", defaultValue: false };
/** Shared attributes reach a device also when it was away, so that new controls work with every device. */
export const switched = (key: string): Json => ({ initialState: known(key), onUpdateState: shared(key), offUpdateState: shared(key), disabledState: USABLE });
const SWITCHED: Json = switched("state");

/** What steers devices and saves values. */
const CONTROL_KINDS: readonly WidgetKind[] = [
  { fqn: "system.single_switch", title: "Switch", type: "rpc", size: { sizeX: 5, sizeY: 3 }, settings: { ...SWITCHED, showLabel: false, layout: "centered", showOnLabel: true, showOffLabel: true } },
  { fqn: "system.power_button", title: "Power button", type: "rpc", size: { sizeX: 4, sizeY: 4 }, settings: { ...SWITCHED, layout: "default" } },
  { fqn: "system.command_button", title: "Button that sends a command", type: "rpc", size: { sizeX: 5, sizeY: 3 }, settings: { appearance: { type: "filled", showIcon: true, icon: "arrow_outward" }, onClickState: { action: "EXECUTE_RPC", executeRpc: { method: "setState", requestTimeout: 5_000 }, valueToData: { type: "NONE" } }, disabledState: USABLE } },
  { fqn: "system.action_button", title: "Button that opens something", type: "latest", size: { sizeX: 5, sizeY: 3 }, keyless: true, settings: { appearance: { type: "outlined", showIcon: false }, activatedState: USABLE, disabledState: USABLE } },
  { fqn: "system.slider", title: "Slider", type: "rpc", size: { sizeX: 6, sizeY: 3 }, settings: { initialState: known("target"), valueChange: shared("target"), disabledState: USABLE, tickMin: 0, tickMax: 100, valueDecimals: 0 } },
  { fqn: "system.value_stepper", title: "Number with steps", type: "rpc", size: { sizeX: 5, sizeY: 3 }, settings: { initialState: known("target"), leftButtonClick: shared("target"), rightButtonClick: shared("target"), disabledState: USABLE, appearance: { minValueRange: 0, maxValueRange: 100, valueStep: 1 } } },
  { fqn: "system.input_widgets.update_multiple_attributes", title: "Form for values", type: "latest", size: { sizeX: 8, sizeY: 5 }, settings: { showActionButtons: true, fieldsInRow: 2, showResultMessage: true } },
  { fqn: "system.control_widgets.rpc_debug_terminal", title: "Terminal for commands", type: "rpc", size: { sizeX: 10, sizeY: 6 }, settings: { requestTimeout: 5_000 } },
  { fqn: "system.cards.qr_code", title: "QR code", type: "latest", keyless: true, size: { sizeX: 4, sizeY: 4 }, settings: { qrCodeTextPattern: "${entityName}" } },
];

export const WIDGET_KINDS: readonly WidgetKind[] = [
  { fqn: "system.cards.value_card", title: "Value", type: "latest", size: { sizeX: 5, sizeY: 4 }, settings: { showLabel: false } },
  { fqn: "system.time_series_chart", title: "Chart over time", type: "timeseries", size: { sizeX: 12, sizeY: 7 } },
  { fqn: "system.bar_chart", title: "Bars over time", type: "timeseries", size: { sizeX: 12, sizeY: 7 } },
  { fqn: "system.cards.timeseries_table", title: "Table of values over time", type: "timeseries", size: { sizeX: 10, sizeY: 7 } },
  { fqn: "system.cards.entities_table", title: "Table of entities", type: "latest", size: { sizeX: 12, sizeY: 7 } },
  { fqn: "system.alarm_widgets.alarms_table", title: "Alarms", type: "alarm", size: { sizeX: 14, sizeY: 7 } },
  { fqn: "system.cards.entities_hierarchy", title: "Tree of entities", type: "latest", size: { sizeX: 8, sizeY: 8 } },
  { fqn: "system.cards.attributes_card", title: "List of values", type: "latest", size: { sizeX: 7, sizeY: 6 } },
  { fqn: "system.entity_admin_widgets.device_admin_table", title: "Devices to add and change", type: "latest", size: { sizeX: 14, sizeY: 8 } },
  { fqn: "system.entity_admin_widgets.asset_admin_table", title: "Assets to add and change", type: "latest", size: { sizeX: 14, sizeY: 8 } },
  { fqn: "system.digital_gauges.gauge_justgage", title: "Gauge", type: "latest", size: { sizeX: 6, sizeY: 5 }, settings: { minValue: 0, maxValue: 100 } },
  { fqn: "system.doughnut", title: "Shares of several keys", type: "latest", size: { sizeX: 7, sizeY: 6 } },
  { fqn: "system.progress_bar", title: "Progress bar", type: "latest", size: { sizeX: 6, sizeY: 3 } },
  { fqn: "system.battery_level", title: "Battery level", type: "latest", size: { sizeX: 5, sizeY: 4 } },
  { fqn: "system.map", title: "Map", type: "latest", size: { sizeX: 12, sizeY: 8 }, settings: { mapType: "geoMap" } },
  { fqn: "system.image_map", title: "Places on a picture", type: "latest", size: { sizeX: 12, sizeY: 8 }, settings: { mapType: "image" } },
  { fqn: "system.trip_map", title: "Trips on a map", type: "timeseries", size: { sizeX: 12, sizeY: 8 }, settings: { mapType: "geoMap" } },
  { fqn: "system.cards.dashboard_state_widget", title: "Another state", type: "static", size: { sizeX: 12, sizeY: 8 }, settings: { stateId: "", defaultAutofillLayout: true, syncParentStateParams: true } },
  { fqn: "system.navigation_widgets.navigation_card", title: "Link to a screen", type: "static", size: { sizeX: 4, sizeY: 2 }, settings: { name: "", path: "/entities/devices" } },
  { fqn: "system.date.date_range_navigator", title: "Steps through time", type: "static", size: { sizeX: 14, sizeY: 2 }, settings: { stepSize: "day" } },
  { fqn: "system.html_container", title: "HTML with code", type: "static", size: { sizeX: 8, sizeY: 5 }, settings: { type: "PLAIN", html: "", css: "", js: "" } },
  { fqn: "system.cards.markdown_card", title: "Text", type: "static", size: { sizeX: 8, sizeY: 4 }, settings: { markdownTextPattern: "### …", useMarkdownTextFunction: false } },
  ...CONTROL_KINDS,
];

/** Returns a new widget of a kind. */
export function newWidget(kind: WidgetKind, title: string): Json {
  const source = { type: "entity", dataKeys: [], ...kind.source };
  return {
    typeFullFqn: kind.fqn,
    type: kind.type,
    config: {
      title,
      showTitle: true,
      settings: kind.settings ?? {},
      datasources: ["alarm", "rpc", "static"].includes(kind.type) ? [] : [source],
      ...(kind.type === "rpc" ? { targetDevice: { type: "entity" } } : {}),
      ...(kind.type === "alarm" ? { alarmSource: source, alarmFilterConfig: { statusList: ["ACTIVE"] } } : {}),
      useDashboardTimewindow: true,
      actions: {},
    },
  };
}
