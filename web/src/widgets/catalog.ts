// Kinds of widgets that can be added, with what a new one begins with.

import type { Json } from "@/dashboard/model";

export interface WidgetKind {
  fqn: string;
  title: string;
  /** What its data is, as ThingsBoard names it. */
  type: "latest" | "timeseries" | "alarm" | "static";
  size: { sizeX: number; sizeY: number };
  settings?: Json;
}

export const WIDGET_KINDS: readonly WidgetKind[] = [
  { fqn: "system.cards.value_card", title: "Value", type: "latest", size: { sizeX: 5, sizeY: 4 }, settings: { showLabel: false } },
  { fqn: "system.time_series_chart", title: "Chart over time", type: "timeseries", size: { sizeX: 12, sizeY: 7 } },
  { fqn: "system.bar_chart", title: "Bars over time", type: "timeseries", size: { sizeX: 12, sizeY: 7 } },
  { fqn: "system.cards.timeseries_table", title: "Table of values over time", type: "timeseries", size: { sizeX: 10, sizeY: 7 } },
  { fqn: "system.cards.entities_table", title: "Table of entities", type: "latest", size: { sizeX: 12, sizeY: 7 } },
  { fqn: "system.alarm_widgets.alarms_table", title: "Alarms", type: "alarm", size: { sizeX: 14, sizeY: 7 } },
  { fqn: "system.digital_gauges.gauge_justgage", title: "Gauge", type: "latest", size: { sizeX: 6, sizeY: 5 }, settings: { minValue: 0, maxValue: 100 } },
  { fqn: "system.doughnut", title: "Shares of several keys", type: "latest", size: { sizeX: 7, sizeY: 6 } },
  { fqn: "system.progress_bar", title: "Progress bar", type: "latest", size: { sizeX: 6, sizeY: 3 } },
  { fqn: "system.battery_level", title: "Battery level", type: "latest", size: { sizeX: 5, sizeY: 4 } },
  { fqn: "system.cards.markdown_card", title: "Text", type: "static", size: { sizeX: 8, sizeY: 4 }, settings: { markdownTextPattern: "### …", useMarkdownTextFunction: false } },
];

/** Returns a new widget of a kind. */
export function newWidget(kind: WidgetKind, title: string): Json {
  const source = { type: "entity", dataKeys: [] };
  return {
    typeFullFqn: kind.fqn,
    type: kind.type,
    config: {
      title,
      showTitle: true,
      settings: kind.settings ?? {},
      datasources: kind.type === "alarm" ? [] : [source],
      ...(kind.type === "alarm" ? { alarmSource: source, alarmFilterConfig: { statusList: ["ACTIVE"] } } : {}),
      useDashboardTimewindow: true,
      actions: {},
    },
  };
}
