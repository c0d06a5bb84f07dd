// Which renderer draws a widget type. Presets differ from their base by settings alone, so a pattern of names is enough.

import type { Widget } from "@/dashboard/model";
import type { EntityValues, SourceRequest, SourceValues } from "@/dashboard/source";
import { Coming, type Part } from "@/ui/coming";

export interface WidgetProps {
  widget: Widget;
  /** Entities of all datasources. */
  entities: readonly EntityValues[];
  sources: SourceValues[];
  /** First and last moment that charts show. */
  bounds: [number, number];
  /** What each source asks for, for widgets that ask themselves; none for one that can't be resolved. */
  requests: readonly (SourceRequest | undefined)[];
  /** Does what the widget declares for a click on one of its sources. Code of actions gets `extra` to know. */
  act: (source: string, entity: EntityValues | undefined, name?: string, extra?: unknown) => void;
}

export interface Renderer {
  part: Coming<WidgetProps>;
  /** Whether it needs the points of a time window instead of latest values. */
  points: boolean;
  /** Whether it draws them over time, with what its settings compare them with. */
  lines?: boolean;
  /** Whether it stays as it is while nobody sees it, with what was typed or is on its way. */
  keeps?: boolean;
  /** Whether it asks for its data itself, page by page. */
  asksItself: boolean;
  names: RegExp;
}

function renderer(names: RegExp, part: Part<WidgetProps>, points = false, asksItself = false): Renderer {
  return { names, part: new Coming(part), points, asksItself };
}

/** For renderers that ask for their data themselves. */
function asking(names: RegExp, part: Part<WidgetProps>): Renderer {
  return renderer(names, part, false, true);
}

/** For renderers that hold what somebody has begun. */
function keeping(names: RegExp, part: Part<WidgetProps>): Renderer {
  return { ...renderer(names, part), keeps: true };
}

const POINTS = true;

/** What steers devices and saves values. */
const CONTROLS: Renderer[] = [
  keeping(/^single_switch$|^control_widgets\.(switch_control|slide_toggle_control|round_switch)$/, () => import("./control/Switch")),
  keeping(/^toggle_button$/, () => import("./control/ToggleButton")),
  keeping(/^two_segment_button$/, () => import("./control/SegmentButton")),
  keeping(/^power_button$/, () => import("./control/PowerButton")),
  keeping(/^command_button$|^control_widgets\.(rpcbutton|update_attributes)$/, () => import("./control/CommandButton")),
  keeping(/^action_button$/, () => import("./control/ActionButton")),
  keeping(/^value_stepper$/, () => import("./control/Stepper")),
  keeping(/^slider$/, () => import("./control/Slider")),
  keeping(/^control_widgets\.knob_control$/, () => import("./control/Knob")),
  keeping(/^control_widgets\.led_indicator$/, () => import("./control/Led")),
  keeping(/^status_widget$/, () => import("./control/Status")),
  keeping(/^control_widgets\.rpc_(debug_terminal|remote_shell)$/, () => import("./control/Terminal")),
  keeping(/^control_widgets\.persistent_table$/, () => import("./control/PersistentTable")),
  keeping(/^gpio_widgets\./, () => import("./control/Gpio")),
  keeping(/^gateway_widgets\.service_rpc$/, () => import("./control/ServiceRpc")),
  keeping(/^input_widgets\.(update_multiple_attributes|update_json_attribute|update_(server|shared)_(string|integer|double|boolean|date|location)_attribute|update_(string|integer|double|boolean|location)_timeseries)$/, () => import("./input/ValueForm")),
  keeping(/^input_widgets\.update_(server|shared)_image_attribute$/, () => import("./input/ImageForm")),
  keeping(/^input_widgets\.web_camera_input$/, () => import("./input/CameraInput")),
  keeping(/^input_widgets\.device_claiming_widget$/, () => import("./input/ClaimForm")),
  keeping(/^cards\.qr_code$/, () => import("./input/QrCode")),
];

/** What leads elsewhere, and what home pages are made of. */
const HOME: Renderer[] = [
  renderer(/^navigation_widgets\.navigation_cards?$|^navigation_cards?$/, () => import("./home/NavigationCards")),
  renderer(/^home_page_widgets\.quick_links$/, () => import("./home/QuickLinks")),
  renderer(/^home_page_widgets\.documentation_links$/, () => import("./home/DocumentationLinks")),
  renderer(/^home_page_widgets\.dashboards$/, () => import("./home/Dashboards")),
  renderer(/^home_page_widgets\.getting_started$/, () => import("./home/GettingStarted")),
  renderer(/^home_page_widgets\.usage_info$/, () => import("./home/UsageInfo")),
  renderer(/^api_usage$/, () => import("./home/ApiUsage")),
  renderer(/^cards\.dashboard_state_widget$/, () => import("./home/StateWidget")),
  renderer(/^date\.date_range_navigator$/, () => import("./home/DateNavigator")),
  renderer(/^html_container$/, () => import("./home/HtmlContainer")),
  renderer(/(^|\.)(unread_notifications|mobile_app_qr_code|iot_hub|edges_overview|edge_quick_overview)$/, () => import("./home/NotHere")),
];

/** The first one whose pattern fits is taken. */
export const RENDERERS: readonly Renderer[] = [
  ...CONTROLS,
  ...HOME,
  { ...renderer(/^(time_series_chart|(line|bar|point|state)_chart|bar_chart_with_labels|charts\.(basic_timeseries|timeseries_bars_flot|state_chart))$|(^|_)range_chart(_with_background)?$/, () => import("./timeChart/TimeChart"), POINTS), lines: true },
  renderer(/aggregated_value_card|chart_card(_with_background2?)?$/, () => import("./card/ChartCard"), POINTS),
  renderer(/^(cards|gateway_widgets)\.(markdown_card|html_card|html_value_card)$|^gateway_widgets\.gateway_status$/, () => import("./MarkupCard")),
  renderer(/^cards\.timeseries_table$/, () => import("./PointsTable"), POINTS),
  asking(/_admin_table$/, () => import("./AdminTable")),
  asking(/^cards\.entities_hierarchy$/, () => import("./hierarchy/Hierarchy")),
  asking(/^cards\.entities_table$/, () => import("./EntitiesTable")),
  asking(/^alarm_widgets\.alarms_table$/, () => import("./AlarmsTable")),
  renderer(/(^|\.)(alarm|entity)_count$/, () => import("./CountCard")),
  renderer(/^((horizontal_)?(pie|doughnut)|bars|polar_area|radar)$|^charts\.(bars|pie|\w+_chart_js)$/, () => import("./latestChart/LatestChart")),
  renderer(/^battery_level$/, () => import("./indicator/Battery")),
  renderer(/^signal_strength$/, () => import("./indicator/Signal")),
  renderer(/^wind_speed_and_direction(_with_background)?$/, () => import("./indicator/Wind")),
  renderer(/_tank$|liquid_level/, () => import("./indicator/Tank")),
  renderer(/progress_bar(_with_background)?$/, () => import("./card/ProgressBar")),
  renderer(/gauge|_justgage$|^analogue_|compass|^digital_gauges\.|_thermometer$|_speedometer$/, () => import("./gauge/Gauge")),
  renderer(/^(cards|gateway_widgets)\.attributes_card$/, () => import("./AttributesCard")),
  renderer(/^cards\.label_widget$/, () => import("./LabelCard")),
  renderer(/^scada_symbol$/, () => import("./symbol/SymbolWidget")),
  renderer(/^(trip|route)_map$|^maps_v2\.(test|route_map\w*)$/, () => import("./map/MapWidget"), POINTS),
  renderer(/^(image_)?map$|^maps_v2\.|^input_widgets\.markers_placement_/, () => import("./map/MapWidget")),
  renderer(/^cards\.simple_card$|^(?!navigation_).*_card(_with_background)?$/, () => import("./card/ValueCard")),
];
const CUSTOM = renderer(/^/, () => import("./CustomWidget"));
const UNKNOWN = renderer(/^/, () => import("./UnknownWidget"));

/** Returns the renderer of a widget type, such as `system.cards.value_card`. Types of tenants have code of their own, which runs in the sandbox. */
export function rendererOf(fqn: string): Renderer {
  const [, scope, name] = /^(system|tenant)\.(.+)$/.exec(fqn) ?? [];
  if (name === undefined) {
    return UNKNOWN;
  }
  return scope === "tenant" ? CUSTOM : (RENDERERS.find((one) => one.names.test(name)) ?? UNKNOWN);
}

/** Whether a type is drawn by more than the frame for unknown ones. */
export function isKnown(fqn: string): boolean {
  return rendererOf(fqn) !== UNKNOWN;
}
