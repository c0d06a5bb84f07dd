// A dashboard made from what an entity sends: a card for each key, and a chart for each number.

import type { EntityId } from "@/api/types";
import type { Json } from "./model";

const COLORS = ["#2196f3", "#f44336", "#4caf50", "#ff9800", "#9c27b0", "#009688", "#795548", "#607d8b"];
/** More keys than these make no page that a person can read. */
const MOST = 40;

/** Returns the configuration of a dashboard in ThingsBoard's form, so that it can be saved and changed as an ordinary one. */
export function automaticDashboard(id: EntityId, values: Record<string, string>): Json {
  const keys = Object.keys(values).sort((a, b) => a.localeCompare(b)).slice(0, MOST);
  const widgets: Json = {};
  const places: Json = {};
  let row = 0;
  const add = (key: string, fqn: string, type: string, n: number, place: { col: number; sizeX: number }): void => {
    const widget = `${fqn}/${key}`;
    const dataKey = { name: key, type: "timeseries", label: key, color: COLORS[n % COLORS.length], settings: {} };
    widgets[widget] = {
      typeFullFqn: `system.${fqn}`,
      type,
      sizeX: place.sizeX,
      sizeY: 5,
      config: { title: key, showTitle: true, settings: fqn === "time_series_chart" ? { showAlarms: true } : { showLabel: false }, datasources: [{ type: "entity", entityAliasId: "entity", dataKeys: [dataKey] }] },
    };
    places[widget] = { ...place, row, sizeY: 5 };
  };
  const isNumber = (key: string): boolean => values[key]?.trim() !== "" && Number.isFinite(Number(values[key]));
  keys.filter(isNumber).forEach((key, n) => {
    add(key, "cards.value_card", "latest", n, { col: 0, sizeX: 6 });
    add(key, "time_series_chart", "timeseries", n, { col: 6, sizeX: 18 });
    row += 5;
  });
  keys.filter((key) => !isNumber(key)).forEach((key, n) => {
    add(key, "cards.value_card", "latest", n, { col: (n % 4) * 6, sizeX: 6 });
    row += n % 4 === 3 ? 5 : 0;
  });
  return {
    widgets,
    states: { default: { name: "Overview", root: true, layouts: { main: { widgets: places, gridSettings: { columns: 24, margin: 10 } } } } },
    entityAliases: { entity: { id: "entity", alias: "Entity", filter: { type: "singleEntity", singleEntity: id, resolveMultiple: false } } },
    timewindow: { selectedTab: 0, realtime: { realtimeType: 0, timewindowMs: 3_600_000, interval: 18_000 }, aggregation: { type: "AVG", limit: 25_000 } },
  };
}
