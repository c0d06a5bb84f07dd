// Which renderer draws a widget type. Presets differ from their base by settings alone, so a pattern of names is enough.

import { lazy, type ComponentType, type LazyExoticComponent } from "react";
import type { Widget } from "@/dashboard/model";
import type { EntityValues } from "@/dashboard/source";

export interface WidgetProps {
  widget: Widget;
  entities: readonly EntityValues[];
  /** First and last moment that charts show. */
  bounds: [number, number];
  /** Does what the widget declares for a click on one of its sources. */
  act: (source: string, entity: EntityValues) => void;
}

interface Renderer {
  draw: LazyExoticComponent<ComponentType<WidgetProps>>;
  /** Whether it needs the points of a time window instead of latest values. */
  points: boolean;
  names: RegExp;
}

const RENDERERS: Renderer[] = [
  {
    names: /^(time_series_chart|line_chart|bar_chart|point_chart|state_chart|range_chart|bar_chart_with_labels|charts\.(basic_timeseries|timeseries_bars_flot|state_chart))$|_range_chart$/,
    points: true,
    draw: lazy(() => import("./TimeChart")),
  },
  { names: /^cards\.timeseries_table$/, points: true, draw: lazy(() => import("./PointsTable")) },
  { names: /^cards\.entities_table$|^entity_admin_widgets\.|_admin_table$/, points: false, draw: lazy(() => import("./EntitiesTable")) },
  { names: /^cards\.(attributes_card|label_widget)$/, points: false, draw: lazy(() => import("./EntitiesTable")) },
  {
    names: /value_card$|^cards\.(simple_card|horizontal_value_card|value_card)$|_card(_with_background)?$|^label_value_card$/,
    points: false,
    draw: lazy(() => import("./ValueCard")),
  },
  { names: /progress_bar(_with_background)?$|gauge|_justgage$|^(battery_level|signal_strength)$|_tank$/, points: false, draw: lazy(() => import("./ProgressBar")) },
];

/** Cards that the pattern of value cards would take by their names, but that show something else. */
const NOT_VALUES = /(chart_card|aggregated_value_card|markdown_card|html_card|html_value_card|navigation_card)/;
const MARKUP: Renderer = { names: /^cards\.(markdown_card|html_card|html_value_card)$/, points: false, draw: lazy(() => import("./MarkupCard")) };
const CHART_CARD: Renderer = { names: /chart_card|aggregated_value_card/, points: true, draw: lazy(() => import("./TimeChart")) };
const UNKNOWN: Renderer = { names: /^/, points: false, draw: lazy(() => import("./UnknownWidget")) };

/** Returns the renderer of a widget type, such as `system.cards.value_card`. Types of tenants have code of their own, which is not run. */
export function rendererOf(fqn: string): Renderer {
  const name = /^system\.(.*)$/.exec(fqn)?.[1];
  if (name === undefined) {
    return UNKNOWN;
  }
  const special = [MARKUP, CHART_CARD].find((renderer) => renderer.names.test(name));
  return special ?? (NOT_VALUES.test(name) ? UNKNOWN : (RENDERERS.find((renderer) => renderer.names.test(name)) ?? UNKNOWN));
}

/** Whether a type is drawn by more than the frame for unknown ones. */
export function isKnown(fqn: string): boolean {
  return rendererOf(fqn) !== UNKNOWN;
}

/** Whether it is the table of alarms, which asks for alarms instead of values. */
export function isAlarms(fqn: string): boolean {
  return fqn === "system.alarm_widgets.alarms_table";
}
