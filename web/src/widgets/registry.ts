// Which renderer draws a widget type. Presets differ from their base by settings alone, so a pattern of names is enough.

import { lazy, type ComponentType, type LazyExoticComponent } from "react";
import type { Widget } from "@/dashboard/model";
import type { EntityValues, SourceValues } from "@/dashboard/source";

export interface WidgetProps {
  widget: Widget;
  /** Entities of all datasources. */
  entities: readonly EntityValues[];
  sources: SourceValues[];
  /** First and last moment that charts show. */
  bounds: [number, number];
  /** Does what the widget declares for a click on one of its sources. */
  act: (source: string, entity: EntityValues | undefined, name?: string) => void;
}

interface Renderer {
  draw: LazyExoticComponent<ComponentType<WidgetProps>>;
  /** Whether it needs the points of a time window instead of latest values. */
  points: boolean;
  names: RegExp;
}

type Part = () => Promise<{ default: ComponentType<WidgetProps> }>;

function renderer(names: RegExp, part: Part, points = false): Renderer {
  return { names, draw: lazy(part), points };
}

const POINTS = true;

/** The first one whose pattern fits is taken. */
const RENDERERS: Renderer[] = [
  renderer(/^(time_series_chart|(line|bar|point|state)_chart|bar_chart_with_labels|charts\.(basic_timeseries|timeseries_bars_flot|state_chart))$|(^|_)range_chart(_with_background)?$/, () => import("./TimeChart"), POINTS),
  renderer(/aggregated_value_card|chart_card(_with_background)?$/, () => import("./ChartCard"), POINTS),
  renderer(/^cards\.(markdown_card|html_card|html_value_card)$/, () => import("./MarkupCard")),
  renderer(/^cards\.timeseries_table$/, () => import("./PointsTable"), POINTS),
  renderer(/^cards\.entities_table$|_admin_table$/, () => import("./EntitiesTable")),
  renderer(/^alarm_widgets\.alarms_table$/, () => import("./AlarmsTable")),
  renderer(/(^|\.)(alarm|entity)_count$/, () => import("./CountCard")),
  renderer(/^((horizontal_)?(pie|doughnut)|bars|polar_area|radar)$|^charts\.(bars|pie|\w+_chart_js)$/, () => import("./LatestChart")),
  renderer(/^battery_level$|^signal_strength$|^status_widget$|^wind_speed_and_direction$/, () => import("./Indicator")),
  renderer(/_tank$|liquid_level/, () => import("./Tank")),
  renderer(/progress_bar(_with_background)?$/, () => import("./ProgressBar")),
  renderer(/gauge|_justgage$|^analogue_|compass|^digital_gauges\.|_thermometer$|_speedometer$/, () => import("./Gauge")),
  renderer(/^cards\.(attributes_card|label_widget)$/, () => import("./EntitiesTable")),
  renderer(/^cards\.simple_card$|^(?!navigation_).*_card(_with_background)?$/, () => import("./ValueCard")),
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
